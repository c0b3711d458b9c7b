package effects

import (
	"context"
	"sync"
	"time"

	"quittance/ledger"
	"quittance/ledger/lookups"
	"quittance/ledger/system"
	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/orders"
	"quittance/reconcile/policy"
)

const (
	// askedFor is how long whoever asks may take; then another may. Sources give up earlier.
	askedFor = 60 * time.Second
	// askEvery is how often the schedule is read when nobody says that something is due.
	askEvery = time.Second
	// askAtOnce bounds the questions of one server, whatever the hosts allow.
	askAtOnce = 64
	// dueAhead is how many questions of a tool are read from the schedule at a time.
	dueAhead = 64
)

// asker asks the downstreams of one server. What is due stands in the database; the
// asker only knows what it read there a moment ago.
type asker struct {
	e      *Engine
	places chan struct{}
	freed  chan struct{} // an answer came: a place at its host is free
	busy   sync.WaitGroup
	due    map[string][]string // by tool, read ahead
	turn   int
	off    bool // nothing may be asked
	looked time.Time
	known  *policy.Policy // whose tools' open effects all have a plan
}

// lookupLoop asks about whatever is due until ctx ends, and then waits for the answers
// that are under way.
func (e *Engine) lookupLoop(ctx context.Context) {
	a := e.newAsker()
	defer a.busy.Wait()
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			clear(a.due) // read again what others may have asked meanwhile
		case <-a.freed:
		case <-e.due:
			clear(a.due)
		}
		again, err := a.round(ctx)
		if err != nil && ctx.Err() == nil {
			e.log.Error("look-ups failed; they are tried again in a second", "error", err)
		}
		t.Reset(again)
	}
}

func (e *Engine) newAsker() *asker {
	return &asker{e: e, places: make(chan struct{}, askAtOnce), freed: make(chan struct{}, 1), due: map[string][]string{}}
}

// round starts every question that is due and that its host allows now, and says when to
// look again.
func (a *asker) round(ctx context.Context) (again time.Duration, err error) {
	again = askEvery
	if err := a.mayAsk(ctx); a.off || err != nil {
		return again, err
	}
	tools := a.e.Policy().Tools()
	if err := a.adopt(ctx); err != nil {
		return again, err
	}
	a.turn++
	for i := range tools {
		t := tools[(i+a.turn)%len(tools)] // in turn: one may need all that their common host allows
		l := t.Lookup()
		if l == nil && t.OnUnknown != policy.OnUnknownSameKey || l != nil && !asks(l) {
			continue
		}
		for {
			id, err := a.next(ctx, t.Name)
			if err != nil {
				return again, err
			}
			if id == "" {
				break
			}
			wait, full, err := a.start(ctx, t, l, id)
			if err != nil {
				return again, err
			}
			if wait > 0 {
				a.due[t.Name] = append([]string{id}, a.due[t.Name]...)
				again = min(again, wait)
				break
			}
			if full {
				return again, nil
			}
		}
	}
	return again, nil
}

// adopt gives a plan to what was interrupted before its tool could be asked about.
func (a *asker) adopt(ctx context.Context) error {
	p := a.e.Policy()
	if p == a.known {
		return nil
	}
	var names []string
	for _, t := range p.Tools() {
		if asked(t) {
			names = append(names, t.Name)
		}
	}
	err := a.e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error { return lookups.Adopt(ctx, tx, names) })
	if err == nil {
		a.known = p
	}
	return err
}

// asks is false for a source whose workers ask for questions.
func asks(l *lookup.Lookup) bool {
	_, pulls := l.Source.(pooled)
	return !pulls
}

// mayAsk looks, once a second, whether nothing may be asked.
func (a *asker) mayAsk(ctx context.Context) error {
	if time.Since(a.looked) < askEvery {
		return nil
	}
	off, err := a.e.lookupsOff(ctx)
	if err == nil {
		a.off, a.looked = off, time.Now()
	}
	return err
}

// lookupsOff tells that nothing may be asked: in a log gap that nobody has acknowledged, or
// in a copy of the database in a place that nothing may leave.
func (e *Engine) lookupsOff(ctx context.Context) (bool, error) {
	m, err := system.Read(ctx, e.db)
	return m.Behind() || !m.Outward, err
}

func (a *asker) next(ctx context.Context, tool string) (string, error) {
	if len(a.due[tool]) == 0 {
		ids, err := lookups.Due(ctx, a.e.db, tool, dueAhead)
		if err != nil || len(ids) == 0 {
			return "", err
		}
		a.due[tool] = ids
	}
	id := a.due[tool][0]
	a.due[tool] = a.due[tool][1:]
	return id, nil
}

// start begins a question in the background. wait > 0: the host is to be left alone for so
// long; full: this server asks as much as it may.
func (a *asker) start(ctx context.Context, t *policy.Tool, l *lookup.Lookup, id string) (wait time.Duration, full bool, err error) {
	done := func(time.Duration, time.Time) {}
	if l != nil {
		var again time.Time
		now := time.Now()
		if done, again = a.e.limiter.Start(l.Source.Host(), l.PerSecond, l.AtOnce, now); done == nil {
			return max(again.Sub(now), time.Millisecond), false, nil
		}
	}
	select {
	case a.places <- struct{}{}:
	default:
		done(0, time.Now())
		return 0, true, nil
	}
	asked, ok, err := lookups.Ask(ctx, a.e.db, id, newID(), askedFor)
	if !ok || err != nil {
		<-a.places
		done(0, time.Now())
		return 0, false, err
	}
	a.busy.Go(func() {
		quiet := a.ask(ctx, t, l, asked)
		<-a.places
		done(quiet, time.Now())
		select {
		case a.freed <- struct{}{}:
		default:
		}
	})
	return 0, false, nil
}

// ask asks one question and stores the answer. It gives back how long the host wants to be
// left alone.
func (a *asker) ask(ctx context.Context, t *policy.Tool, l *lookup.Lookup, asked lookups.Asked) time.Duration {
	e := a.e
	q, err := e.questionOf(ctx, t, asked)
	var seen lookup.Seen
	if err == nil && l != nil {
		limited, cancel := context.WithTimeout(ctx, askedFor-5*time.Second)
		seen, err = e.see(limited, l, q)
		cancel()
	}
	if ctx.Err() != nil {
		// What a stopping server did not hear is not the downstream's silence.
		e.giveBack(context.WithoutCancel(ctx), asked, 0)
		return 0
	}
	if err == nil {
		_, err = e.answered(ctx, t, l, asked, q, seen)
	}
	if err != nil {
		e.log.Error("a look-up's answer could not be stored", "effect", asked.Effect, "error", err)
		e.giveBack(ctx, asked, 10*askEvery)
	}
	return seen.RetryAfter
}

// see looks once: at the downstream, among the events that it sent, or among our own orders.
func (e *Engine) see(ctx context.Context, l *lookup.Lookup, q lookup.Question) (lookup.Seen, error) {
	switch in := l.Source.(type) {
	case eventful:
		return e.seeEvents(ctx, l, in, q)
	case *orders.Source:
		return e.seeOrder(ctx, l, in, q)
	}
	return l.Ask(ctx, e.redact, q), nil
}

func (e *Engine) giveBack(ctx context.Context, asked lookups.Asked, after time.Duration) {
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err := e.db.InTx(limited, func(ctx context.Context, tx *ledger.Tx) error { return lookups.GiveBack(ctx, tx, asked, after) })
	if err != nil {
		e.log.Warn("a question could not be given back; it is free again in a minute", "effect", asked.Effect, "error", err)
	}
}

// questionOf reads what is known of an effect before its downstream is asked.
func (e *Engine) questionOf(ctx context.Context, t *policy.Tool, asked lookups.Asked) (lookup.Question, error) {
	around, err := lookups.ReadAround(ctx, e.db, asked.Effect)
	if err != nil {
		return lookup.Question{}, err
	}
	q, err := question(t, around)
	q.AskedAt = asked.At.Time
	return q, err
}
