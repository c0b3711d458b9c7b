package effects

import (
	"context"
	"time"

	"github.com/google/uuid"

	"quittance/ledger"
	"quittance/ledger/lookups"
	"quittance/reconcile/policy"
)

// asked tells whether anything is done by itself about an effect whose outcome is not
// known: its downstream is asked, or its vendor's key makes a repeat safe.
func asked(t *policy.Tool) bool { return t.HasLookup() || t.OnUnknown == policy.OnUnknownSameKey }

// plan keeps how the effect's downstream is asked in line with where the effect stands.
func (w *work) plan(x *effect, before, after Facts) {
	p, changed := planAfter(before, after)
	if !changed || !asked(w.tool(x)) {
		return
	}
	c := &lookups.Change{Effect: x.ID, Tool: x.Tool, Plan: p}
	if p != lookups.None {
		c.Next = ledger.At(w.now.Add(jitter(steps[p][0])))
	}
	w.plans[x.ID] = c
}

// recheck lets a decision wait for one more look before it is released: asked when nothing
// that was sent can land and stay unseen any more.
func (w *work) recheck(x *effect) {
	if !w.rechecked(x) {
		return
	}
	from := w.now
	if x.Moment.After(from) {
		from = x.Moment.Time
	}
	w.plans[x.ID] = &lookups.Change{
		Effect: x.ID, Tool: x.Tool, Plan: planOf(x.facts()), Next: ledger.At(from),
		RecheckFrom: ledger.At(from), RecheckUntil: ledger.At(from.Add(recheckPatience)),
	}
}

// schedule writes the plans that changed.
func (w *work) schedule(ctx context.Context) error {
	if len(w.plans) == 0 {
		return nil
	}
	list := make([]lookups.Change, 0, len(w.plans))
	for _, c := range w.plans {
		list = append(list, *c)
		w.planned = w.planned || !c.Next.IsZero() && !c.Next.After(w.now)
	}
	clear(w.plans)
	return lookups.Set(ctx, w.tx, list)
}

// lookSoon wakes the asker, and the workers that wait, where something is due.
func (e *Engine) lookSoon(due bool) {
	if !due {
		return
	}
	select {
	case e.due <- struct{}{}:
	default:
	}
	e.hub.Changed(lookupsDue)
}

// staleAfter is how old the last look may be before opening an effect's page asks again.
const staleAfter = time.Minute

// LookNow asks the downstream of an effect out of turn, because somebody wants to know
// now. Nobody is asked twice at once: false says that a question is under way or waits
// its turn already. Refused for an effect that has no look-up, or was never sent.
func (e *Engine) LookNow(ctx context.Context, id string) (soon bool, err error) {
	key, err := uuid.Parse(id)
	if err != nil {
		return false, noEffect()
	}
	err = e.onEffect(ctx, key.String(), func(ctx context.Context, w *work, x *effect) (*Refusal, error) {
		if !w.tool(x).HasLookup() {
			return x.refusal(CodeNoLookup, "The tool has no look-up: a person must find out."), nil
		}
		p := planOf(x.facts())
		if p == lookups.None {
			return x.refusal(CodeNotAllowed, "Nothing was sent that a downstream could be asked about."), nil
		}
		var err error
		soon, err = lookups.Sooner(ctx, w.tx, lookups.Change{Effect: x.ID, Tool: x.Tool, Plan: p}, lookups.ByPerson, 0)
		return nil, err
	})
	e.lookSoon(soon && err == nil)
	return soon, err
}

// LookIfStale is LookNow for somebody who opened the page of an effect that is not
// settled: it asks only if the last look is older than a minute, and refuses nothing.
func (e *Engine) LookIfStale(ctx context.Context, id string) error {
	s, err := lookups.Get(ctx, e.db, id)
	if err != nil || s == nil || !e.Policy().Tool(s.Tool).HasLookup() || s.Plan != lookups.Unknown && s.Plan != lookups.Permission {
		return err
	}
	soon := false
	err = e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) (err error) {
		soon, err = lookups.Sooner(ctx, tx, lookups.Change{Effect: id, Tool: s.Tool, Plan: s.Plan}, lookups.ByPage, staleAfter)
		return err
	})
	e.lookSoon(soon && err == nil)
	return err
}
