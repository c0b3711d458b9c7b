package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// LookupHit is a record that goes by the question's business key, in the form that a worker
// look-up reads without expressions of its own.
type LookupHit struct {
	BusinessKey string `json:"business_key"`
	Reference   string `json:"reference"` // the downstream's name for the record
	// Amount is decimal text, with its currency; only where the tool declares an amount.
	Amount   string `json:"amount,omitempty"`
	Currency string `json:"currency,omitempty"`
	// RecipientMatches: it went to whom the arguments name. Final: it will not change any more.
	RecipientMatches bool `json:"recipient_matches"`
	Final            bool `json:"final"`
	// Result is what the agent is given as the tool's own.
	Result any `json:"result"`

	Ours     bool   `json:"ours,omitempty"`     // it carries our own key
	Never    bool   `json:"never,omitempty"`    // it did not and never will take effect
	Reversed bool   `json:"reversed,omitempty"` // it took effect, and the money came back
	State    string `json:"state,omitempty"`    // the downstream's own word, for people
}

// LookupFound is what was seen of one question: records, never a verdict.
type LookupFound struct {
	Hits     []any // each a [LookupHit], or an object that the policy's expressions read
	Possible []any // what may be ours without the key
	Complete bool  // everything that there is was read
	// CanarySeen: a record that exists was seen with the same credentials.
	CanarySeen bool
	World      string // where it was looked, such as "live"
}

// Look looks where a question can be answered. ctx ends when the answer is not waited for
// any more. An error, or a panic, says that it could not look, which proves nothing; its
// text may hold anything and is logged here only, the server is told a kind.
type Look func(ctx context.Context, q LookupQuestion) (LookupFound, error)

// lookupWait is how long the server holds a claim while nothing is due.
const lookupWait = 30 * time.Second

// AnswerLookups answers the questions of a pool of workers, the tools of which have
// lookup: worker: {pool: NAME} in the policy, atOnce of them at one time. It goes on through
// outages until ctx ends; then it takes no more questions, answers those under way, and
// returns nil. The error is a refusal that another try would not change: a token that opens
// nothing, a pool that no tool names.
func (c *Client) AnswerLookups(ctx context.Context, pool string, atOnce int, look Look) error {
	if atOnce < 1 {
		return errors.New("couldn't answer look-ups: at least one at a time")
	}
	free := make(chan struct{}, atOnce)
	var under sync.WaitGroup
	defer under.Wait()
	for try := 0; ; {
		places := c.places(ctx, free)
		if places == 0 {
			return nil
		}
		questions, err := c.claimLookups(ctx, pool, places)
		came := time.Now()
		for range places - len(questions) {
			<-free
		}
		for _, q := range questions {
			under.Go(func() {
				defer func() { <-free }()
				c.answerLookup(ctx, q, came, look)
			})
		}
		switch again, after := retryable(err); {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			try = 0
		case !again:
			return fmt.Errorf("couldn't claim look-ups of pool %q: %w", pool, err)
		default:
			c.log.Warn("look-ups can't be claimed; it is tried again", "pool", pool, "error", err)
			sleep(ctx, backoff(try, after))
			try++
		}
	}
}

// places takes as many places as are free, and waits for the first; 0 when ctx ends.
func (c *Client) places(ctx context.Context, free chan struct{}) (n int) {
	select {
	case <-ctx.Done():
		return 0
	case free <- struct{}{}:
		n = 1
	}
	for n < min(cap(free), 100) {
		select {
		case free <- struct{}{}:
			n++
		default:
			return n
		}
	}
	return n
}

func (c *Client) claimLookups(ctx context.Context, pool string, most int) ([]LookupQuestion, error) {
	var out LookupQuestions
	err := c.once(ctx, &request{method: http.MethodPost, path: "/v1/lookups/claim", out: &out, wait: lookupWait,
		in: ClaimLookups{Pool: pool, Max: most, Wait: lookupWait.String()}})
	return out.Questions, err
}

// answerLookup looks and answers, also when ctx ends meanwhile.
func (c *Client) answerLookup(ctx context.Context, q LookupQuestion, came time.Time, look Look) {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), came.Add(time.Duration(q.AnswerWithin)*time.Millisecond))
	defer cancel()
	answer := c.lookFor(ctx, q, look)
	_, err := c.AnswerLookup(ctx, q.LookupID, answer)
	if p, ok := errors.AsType[*Problem](err); ok && p.Status >= 400 && p.Status < 500 && p.Code != CodeLookupOver && answer.Error == "" {
		// What it cannot take must not look like a worker that died.
		_, err = c.AnswerLookup(ctx, q.LookupID, LookupAnswer{Error: "the worker's answer was refused: " + p.Code})
	}
	if err != nil {
		c.log.Warn("a look-up's answer was not taken; the question is asked again", "lookup", q.LookupID, "effect", q.EffectID, "error", err)
	}
}

// lookFor calls the team's code and writes down what it found, or why it could not look.
func (c *Client) lookFor(ctx context.Context, q LookupQuestion, look Look) (a LookupAnswer) {
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("a look-up panicked", "lookup", q.LookupID, "effect", q.EffectID, "panic", p)
			a = LookupAnswer{Error: "the worker's code panicked"}
		}
	}()
	found, err := look(ctx, q)
	if err == nil {
		if a, err = found.answer(); err == nil {
			return a
		}
	}
	c.log.Warn("a look-up could not look", "lookup", q.LookupID, "effect", q.EffectID, "error", err)
	return LookupAnswer{Error: kindOf(err)}
}

// kindOf says why it could not be looked without a word of the error.
func kindOf(err error) string {
	switch broken, ok := errors.AsType[net.Error](err); {
	case errors.Is(err, context.DeadlineExceeded), ok && broken.Timeout():
		return "the worker could not look (time-out)"
	case ok:
		return "the worker could not look (network)"
	case errors.Is(err, errUnwritable):
		return "the worker could not look (a record is no JSON)"
	}
	return "the worker could not look"
}

// errUnwritable is a record that cannot be sent.
var errUnwritable = errors.New("couldn't write a record")

// answer is what was found as it is sent. No hits is an empty list: it was looked.
func (f LookupFound) answer() (a LookupAnswer, err error) {
	a = LookupAnswer{Hits: []json.RawMessage{}, Complete: f.Complete, CanarySeen: f.CanarySeen, World: f.World}
	for _, part := range []struct {
		from []any
		to   *[]json.RawMessage
	}{{f.Hits, &a.Hits}, {f.Possible, &a.Possible}} {
		for _, record := range part.from {
			raw, err := marshal(record)
			if err != nil {
				return LookupAnswer{}, fmt.Errorf("%w: %w", errUnwritable, err)
			}
			*part.to = append(*part.to, raw)
		}
	}
	return a, nil
}
