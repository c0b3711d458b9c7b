package effects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"quittance/ledger"
	store "quittance/ledger/effects"
	"quittance/ledger/lookups"
	"quittance/ledger/system"
	"quittance/reconcile/canon"
	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/limit"
	"quittance/reconcile/notify"
	"quittance/reconcile/policy"
	"quittance/reconcile/redact"
)

const (
	// tryPatience is how long a trial may take in all, its turn at the host included: a
	// person waits for it.
	tryPatience = 20 * time.Second
	// tryTurn is how long it waits for its turn.
	tryTurn = 5 * time.Second
	// keySince is since when a key without a call is asked about.
	keySince = 24 * time.Hour
)

// Trial is what a look-up said that was asked only to see whether it works.
type Trial struct {
	Effect string // the call that was asked about; "" where none has the key
	Look   LookView
	Result []byte // what the agent would be given, for taken
}

// TryLookup asks a tool's downstream about a business key and judges the answer, through
// the same limits as any look-up, and stores nothing. It is asked about the latest call
// with the key; where there is none, about the key alone, which shows what is found and
// proves nothing. Refused where the tool has no look-up that can be asked.
func (e *Engine) TryLookup(ctx context.Context, tool, key string) (Trial, error) {
	t := e.Policy().Tool(tool)
	l := t.Lookup()
	if l == nil {
		return Trial{}, &Refusal{Code: CodeNoLookup, Detail: fmt.Sprintf("The tool %q has no look-up in this policy.", tool)}
	}
	if _, told := l.Source.(lookup.Told); told {
		return Trial{}, &Refusal{Code: CodeNotAllowed, Detail: fmt.Sprintf("The look-up of %q is told and cannot be asked: it waits for what its %s brings.", tool, l.Kind)}
	}
	if r := limited("/key", key, 1024); r != nil {
		return Trial{}, r
	}
	ctx, cancel := context.WithTimeout(ctx, tryPatience)
	defer cancel()
	m, err := system.Read(ctx, e.db)
	if err != nil {
		return Trial{}, err
	}
	if !m.Outward {
		return Trial{}, &Refusal{Code: CodeNotAllowed, Detail: "This database was started in another place than before: nothing is asked until a person has switched that on."}
	}
	q, around, err := e.questionAbout(ctx, t, key, m.Now)
	if err != nil {
		return Trial{}, err
	}
	done, err := e.turn(ctx, l)
	if err != nil {
		return Trial{}, err
	}
	seen := l.Ask(ctx, e.redact, q)
	done(seen.RetryAfter, time.Now())
	var a lookup.Answer
	out := Trial{Effect: q.Effect}
	if q.KeyOnly {
		a = lookup.Judge(q, l.Terms, seen, nil)
	} else if a, err = judge(ctx, e.db, t, l, around, &q, seen); err != nil {
		return Trial{}, err
	}
	out.Look = LookView{
		AskedAt: q.AskedAt, AnsweredAt: q.AskedAt.Add(seen.Latency), Kind: l.Kind, Request: storable(seen.Request), Status: seen.Status, Pages: seen.Pages,
		Latency: seen.Latency, BodyDigest: seen.Digest, Excerpt: seen.Excerpt, Problem: seen.Problem, Verdict: verdictWord(a.Verdict), Reason: a.Reason,
		Why: storable(a.Why), Reference: a.Reference, Earliest: a.Earliest, Showed: Showed{a.Hits, a.Conditions},
	}
	out.Result = json.RawMessage(a.Result)
	return out, nil
}

func verdictWord(v lookup.Verdict) string {
	if v == lookup.Inconclusive {
		return "inconclusive"
	}
	return string(v)
}

// questionAbout is the question about the latest call with a business key, or about the key
// alone.
func (e *Engine) questionAbout(ctx context.Context, t *policy.Tool, key string, now time.Time) (q lookup.Question, around lookups.Around, err error) {
	id, err := e.latestWith(ctx, t.Name, key)
	if err != nil {
		return q, around, err
	}
	if id == "" {
		none, err := canon.ParseObject([]byte(`{}`))
		if err != nil {
			return q, around, err
		}
		q = lookup.Question{
			KeyOnly: true, Tool: t.Name, Arguments: none, AskedAt: now,
			Attempts: []lookup.Attempt{{Begun: now.Add(-keySince), Deadline: now.Add(-keySince).Add(t.Deadline)}},
		}
		if lands, declared := t.LandsWithin(); declared {
			q.LandsWithin = &lands
		}
		return q.As(key), around, nil
	}
	if around, err = lookups.ReadAround(ctx, e.db, id); err != nil {
		return q, around, err
	}
	q, err = question(t, around)
	q.AskedAt = now
	return q, around, err
}

// latestWith finds the latest call of a tool with a business key, whoever's it is; "" for
// none. One that may have been sent comes before one that was not.
func (e *Engine) latestWith(ctx context.Context, tool, key string) (string, error) {
	accounts, err := store.AccountIDs(ctx, e.db)
	if err != nil {
		return "", err
	}
	claims := make([][]byte, len(accounts))
	for i, a := range accounts {
		k := canon.ClaimKey(accountText(a), tool, key)
		claims[i] = k[:]
	}
	return store.LatestWith(ctx, e.db, tool, claims)
}

// turn waits until the look-up's host may be asked.
func (e *Engine) turn(ctx context.Context, l *lookup.Lookup) (done func(time.Duration, time.Time), err error) {
	until := time.Now().Add(tryTurn)
	for {
		now := time.Now()
		done, again := e.limiter.Start(l.Source.Host(), l.PerSecond, l.AtOnce, now)
		if done != nil {
			return done, nil
		}
		if again.After(until) {
			wait := again.Sub(now)
			return nil, &Refusal{Code: CodeNotAllowed, RetryAfter: wait,
				Detail: fmt.Sprintf("The downstream is asked as often as it allows. Try again in %d s.", int((wait+time.Second-1)/time.Second))}
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(errors.New("couldn't wait for a turn at the downstream"), ctx.Err())
		case <-time.After(time.Until(again)):
		}
	}
}

// Reading makes an engine that only reads, and tries look-ups: the policy is put in force
// nowhere, and nothing of the database changes. Everything else of it fails or misleads.
func Reading(ctx context.Context, db *ledger.DB, p *policy.Policy) (*Engine, error) {
	s, err := system.LoadSecrets(ctx, db)
	if err != nil {
		return nil, err
	}
	e := &Engine{db: db, secrets: s, redact: redact.New(s.Redaction), hub: notify.NewHub(), log: slog.New(slog.DiscardHandler), limiter: limit.New()}
	e.current.Store(p)
	return e, nil
}
