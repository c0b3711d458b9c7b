package effects

import (
	"context"
	"time"

	"github.com/google/uuid"

	"quittance/ledger"
	"quittance/ledger/lookups"
	"quittance/reconcile/lookup"
	"quittance/reconcile/policy"
)

// pooled is a look-up by the team's own workers, which ask for questions.
type pooled interface {
	lookup.Told
	Pool() string
	Canary() string
}

// lookupsDue is the topic that changes when a question may be asked now.
const lookupsDue = "lookups"

// maxClaim bounds how many questions a worker may take at a time.
const maxClaim = 100

// ClaimLookups asks for questions about an account's effects, for the workers of a pool.
type ClaimLookups struct {
	Account int64
	Pool    string
	Max     int           // 1 to 100; 0 means 1
	Wait    time.Duration // how long to wait for the first one; at most [MaxWait]
}

// LookupQuestion is a question that a worker was given: until Until nobody else is.
type LookupQuestion struct {
	lookup.Question
	ID        string
	Arguments []byte // JSON, as stored: secrets are replaced
	World     string // where the effects take place; "" where that is not declared
	Canary    string // the business key of a record that exists; "" where none is declared
	Until     time.Time
	Within    time.Duration // what is left until then
}

// LookupVerdict is what a worker's answer proves.
type LookupVerdict struct {
	ID, EffectID string
	Verdict      string // "taken" | "not_taken" | "inconclusive"
	Reason       lookup.Reason
	Why          string
	Earliest     time.Time // when "not taken" can be proven at the earliest; zero: not known
}

// pool are the policy's tools that workers of the pool look up; "" is any pool.
func (e *Engine) pool(name string) map[string]*policy.Tool {
	tools := map[string]*policy.Tool{}
	for _, t := range e.Policy().Tools() {
		if l := t.Lookup(); l != nil {
			if s, ok := l.Source.(pooled); ok && (name == "" || s.Pool() == name) {
				tools[t.Name] = t
			}
		}
	}
	return tools
}

func names[V any](m map[string]V) []string {
	list := make([]string, 0, len(m))
	for name := range m {
		list = append(list, name)
	}
	return list
}

// ClaimLookups gives questions that are due to a worker, each to one worker for a minute;
// none where nothing is due within the wait, or nothing may be asked, as in a log gap.
// Refused for a pool that no tool of the policy names.
func (e *Engine) ClaimLookups(ctx context.Context, c ClaimLookups) ([]LookupQuestion, error) {
	if c.Max == 0 {
		c.Max = 1
	}
	refusal := limited("/pool", c.Pool, 256)
	switch {
	case refusal != nil:
		return nil, refusal
	case c.Max < 1 || c.Max > maxClaim:
		return nil, invalid("/max", "It is a number from 1 to %d.", maxClaim)
	}
	until := time.Now().Add(min(c.Wait, MaxWait))
	hints, cancel := e.hub.Subscribe(lookupsDue)
	defer cancel()
	for {
		list, err := e.claimLookups(ctx, c)
		if err != nil || len(list) > 0 || !time.Now().Before(until) {
			return list, err
		}
		if err := rest(ctx, hints, min(time.Until(until), askEvery)); err != nil {
			return nil, err
		}
	}
}

func (e *Engine) claimLookups(ctx context.Context, c ClaimLookups) (list []LookupQuestion, err error) {
	tools := e.pool(c.Pool)
	if len(tools) == 0 {
		return nil, invalid("/pool", "No tool of the policy is looked up by the workers of this pool.")
	}
	if off, err := e.lookupsOff(ctx); off || err != nil {
		return nil, err
	}
	ids, err := lookups.DueOf(ctx, e.db, c.Account, names(tools), c.Max)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		asked, ok, err := lookups.Ask(ctx, e.db, id, newID(), askedFor)
		if err != nil {
			e.giveAllBack(ctx, list)
			return nil, err
		}
		if !ok {
			continue // another worker was faster
		}
		q, err := e.questionFor(ctx, tools, asked)
		if err != nil {
			e.giveBack(context.WithoutCancel(ctx), asked, 10*askEvery)
			e.log.Error("a question could not be put", "effect", asked.Effect, "error", err)
			continue
		}
		list = append(list, q)
	}
	if ctx.Err() != nil {
		e.giveAllBack(ctx, list) // nobody will read it
		return nil, context.Cause(ctx)
	}
	return list, nil
}

func (e *Engine) questionFor(ctx context.Context, tools map[string]*policy.Tool, asked lookups.Asked) (q LookupQuestion, err error) {
	around, err := lookups.ReadAround(ctx, e.db, asked.Effect)
	if err != nil {
		return q, err
	}
	t := tools[around.Tool]
	l := t.Lookup()
	q = LookupQuestion{ID: asked.By, Arguments: []byte(around.Arguments), World: l.Terms.World, Canary: l.Source.(pooled).Canary(), Until: asked.At.Add(askedFor)}
	if q.Question, err = question(t, around); err != nil {
		return q, err
	}
	now, err := e.db.Now(ctx)
	q.AskedAt, q.Within = asked.At.Time, q.Until.Sub(now)
	return q, err
}

func (e *Engine) giveAllBack(ctx context.Context, list []LookupQuestion) {
	for _, q := range list {
		e.giveBack(context.WithoutCancel(ctx), lookups.Asked{Effect: q.Effect, By: q.ID}, 0)
	}
}

// AnswerLookup judges what a worker brought for a question that it was given: one JSON
// object, as the worker look-up reads it. The same answer again gets the same verdict again.
// Refused with lookup_over where the question is not the worker's any more, with not_found
// where it never was this account's; what it was about is asked again.
func (e *Engine) AnswerLookup(ctx context.Context, account int64, id string, brought []byte) (v LookupVerdict, err error) {
	key, err := uuid.Parse(id)
	if err != nil {
		return v, noQuestion()
	}
	id = key.String()
	asked, err := lookups.ByID(ctx, e.db, account, id)
	if err != nil {
		return v, err
	}
	if asked == nil {
		return e.answeredBefore(ctx, account, id, brought)
	}
	t := e.pool("")[asked.Tool]
	if t == nil {
		e.giveBack(ctx, asked.Asked, 0)
		return v, over(asked.Effect, "The policy does not leave this tool to workers any more.")
	}
	q, err := e.questionOf(ctx, t, asked.Asked)
	if err != nil {
		return v, err
	}
	seen := t.Lookup().See(ctx, e.redact, q, [][]byte{brought})
	now, err := e.db.Now(ctx)
	if err != nil {
		return v, err
	}
	seen.Latency = max(now.Sub(asked.At.Time), 0)
	a, err := e.answered(ctx, t, t.Lookup(), asked.Asked, q, seen)
	if err != nil {
		return v, err
	}
	if a == nil {
		return e.answeredBefore(ctx, account, id, brought)
	}
	return LookupVerdict{
		ID: id, EffectID: asked.Effect, Verdict: verdictWord(a.answer.Verdict), Reason: a.answer.Reason, Why: a.answer.Why, Earliest: a.answer.Earliest,
	}, nil
}

// answeredBefore answers what is brought for a question that is out no more.
func (e *Engine) answeredBefore(ctx context.Context, account int64, id string, brought []byte) (v LookupVerdict, err error) {
	r, err := lookups.Recorded(ctx, e.db, account, id)
	switch {
	case err != nil:
		return v, err
	case r == nil:
		return v, noQuestion()
	case r.Problem == string(lookup.Unanswered):
		return v, over(r.Effect, "The answer came too late: the question was put on record as unanswered, and is asked again.")
	case r.BodyDigest != lookup.Digest(brought):
		return v, over(r.Effect, "The question has been answered otherwise already. Nothing was changed.")
	}
	return LookupVerdict{ID: id, EffectID: r.Effect, Verdict: r.Verdict, Reason: lookup.Reason(r.Reason), Why: r.Why, Earliest: r.Earliest.Time}, nil
}

func noQuestion() *Refusal { return &Refusal{Code: CodeNotFound, Detail: "There is no such question."} }

func over(effect, detail string) *Refusal {
	return &Refusal{Code: CodeLookupOver, EffectID: effect, Detail: detail}
}

// lapse puts on record that workers took questions and did not answer in time. The first
// time the question is due again at once; a question that one worker after another dies of
// goes on with its schedule.
func (e *Engine) lapse(ctx context.Context) error {
	tools := e.pool("")
	if len(tools) == 0 {
		return nil
	}
	list, err := lookups.Lapsed(ctx, e.db, names(tools), loopBatch)
	if err != nil {
		return err
	}
	for _, asked := range list {
		t := tools[asked.Tool]
		q, err := e.questionOf(ctx, t, asked.Asked)
		if err != nil {
			return err
		}
		a, err := e.answered(ctx, t, t.Lookup(), asked.Asked, q, t.Lookup().See(ctx, e.redact, q, nil))
		if err != nil {
			return err
		}
		e.lookSoon(a != nil)
	}
	return nil
}

// unclaimed ends the schedule of questions that no worker took for as long as it would have
// lasted: a person has to find out, as after a downstream that was asked in vain.
func (e *Engine) unclaimed(ctx context.Context) error {
	tools := e.pool("")
	if len(tools) == 0 {
		return nil
	}
	ended := 0
	err := e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) (err error) {
		ended, err = lookups.Unclaimed(ctx, tx, names(tools), unclaimedFor())
		return err
	})
	if err == nil && ended > 0 {
		e.log.Warn("no worker took questions for as long as they were to be asked: a person has to find out", "questions", ended)
		e.hub.Changed("")
	}
	return err
}

// unanswered lets a question whose worker died be due again at once, unless the one before
// did as well.
func (a *answering) unanswered(ctx context.Context, next *lookups.Settled) error {
	if a.plan.Plan == lookups.None {
		return nil
	}
	last, err := lookups.LastProblem(ctx, a.tx, a.x.ID, a.id)
	if err != nil || last == string(lookup.Unanswered) {
		return err
	}
	next.Step, next.Pulled, next.Ended, next.Next = a.plan.Step, a.plan.Pulled, false, ledger.At(a.now)
	return nil
}

// toldLoop looks after what is told instead of asked, until ctx ends: questions whose
// workers died, and events that came.
func (e *Engine) toldLoop(ctx context.Context) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		if err := e.told(ctx); err != nil && ctx.Err() == nil {
			e.log.Error("workers and events are not looked after; it is tried again in a second", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-e.arrived:
		}
	}
}

func (e *Engine) told(ctx context.Context) error {
	if len(e.pool("")) == 0 && len(e.inboxes()) == 0 {
		return nil
	}
	if off, err := e.lookupsOff(ctx); off || err != nil {
		return err
	}
	if err := e.lapse(ctx); err != nil {
		return err
	}
	if err := e.unclaimed(ctx); err != nil {
		return err
	}
	return e.arrivals(ctx)
}
