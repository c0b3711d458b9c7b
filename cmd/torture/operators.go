package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"quittance/client"
	"quittance/cmd/quittance/demo/bank"
	"quittance/cmd/torture/payer"
)

// operators are people who decide whatever of a round waits, from the bank's own book:
// mostly at once, sometimes late, twice, for a version that has moved on, or, where the
// kind of round allows it, against what they see.
type operators struct {
	w  *world
	p  plan
	in map[string]bool // the round's runs

	mu    sync.Mutex
	busy  map[string]bool // effects that somebody looks at
	wrong map[string]bool // invoices that somebody decided against the truth
	acts  map[string]int  // by what was done
}

func newOperators(w *world, p plan) *operators {
	o := &operators{w: w, p: p, in: map[string]bool{}, busy: map[string]bool{}, wrong: map[string]bool{}, acts: map[string]int{}}
	for _, r := range p.Runs {
		o.in[r.Name] = true
	}
	return o
}

// atOnce is how many things are decided side by side.
const atOnce = 16

// work decides until ctx ends.
func (o *operators) work(ctx context.Context) {
	var deciding sync.WaitGroup
	defer deciding.Wait()
	free := make(chan struct{}, atOnce)
	for ctx.Err() == nil {
		rows, err := o.queue(ctx)
		if err != nil && ctx.Err() == nil {
			o.count("the queue could not be read")
		}
		for _, row := range rows {
			if !o.in[row.RunID] || !o.take(row.EffectID) {
				continue
			}
			free <- struct{}{}
			deciding.Go(func() {
				defer func() { <-free; o.leave(row.EffectID) }()
				if err := o.judge(ctx, row); err != nil && ctx.Err() == nil {
					o.count(refusalOf(err))
				}
			})
		}
		pause(ctx, 200*time.Millisecond)
	}
}

func (o *operators) queue(ctx context.Context) (rows []client.QueueItem, err error) {
	f := client.QueueFilter{Limit: 200}
	for {
		page, err := o.w.people[0].Queue(ctx, f)
		rows = append(rows, page.Items...)
		if f.Cursor = page.NextCursor; err != nil || f.Cursor == "" {
			return rows, err
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// refusalOf names an error shortly.
func refusalOf(err error) string {
	if p, ok := errors.AsType[*client.Problem](err); ok {
		return strings.TrimSpace("refused: " + p.Code + " " + p.Reason)
	}
	return "no answer"
}

func (o *operators) take(effect string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.busy[effect] {
		return false
	}
	o.busy[effect] = true
	return true
}

func (o *operators) leave(effect string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.busy, effect)
}

func (o *operators) count(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.acts[what]++
}

// judge decides one row of the queue.
func (o *operators) judge(ctx context.Context, row client.QueueItem) error {
	x, err := o.w.people[0].Effect(ctx, row.EffectID)
	if err != nil {
		return err
	}
	invoice := strings.TrimPrefix(x.BusinessKey, payer.Payee+"/")
	manner := draw(o.p.Seed, 20, "manner", invoice, x.RunID, len(x.Attempts), x.State)
	if manner < 3 {
		o.count("late")
		pause(ctx, time.Duration(500+200*manner)*time.Millisecond*2)
	}
	book, err := o.w.booked(o.p.Kind)
	if err != nil {
		return err
	}
	found := book[invoice]
	d := client.DecisionRequest{Version: x.Version, Note: "as the bank's book has it"}
	switch {
	case x.BusinessKey == "" && !row.Contradicted:
		// A torn line of a file: it may have been an intent, and its agent has written it anew.
		d.Verdict, d.Note = client.VerdictStop, "nothing was sent for half a line"
	case row.Contradicted:
		d.Verdict, d.Recovery = client.VerdictAcknowledge, len(found) > 1
	case x.State == "held":
		if !o.overlap(x, &d) {
			return nil // the other is not decided
		}
	case manner < o.p.Wrong && o.p.Kind != lands && x.State == "interrupted":
		return o.against(ctx, x, invoice, book, d)
	default:
		if o.p.Kind == lands && len(found) == 0 && manner%4 == 0 && x.Moment != nil {
			o.count("after the moment")
			pause(ctx, time.Until(*x.Moment)+50*time.Millisecond)
			if book, err = o.w.booked(o.p.Kind); err != nil {
				return err
			}
			found = book[invoice]
		}
		truth(&d, found)
	}
	err = o.decide(ctx, x, d, manner)
	if p, ok := errors.AsType[*client.Problem](err); ok && p.Reason == "reference" && d.Verdict == client.VerdictTaken {
		d.Reference, d.Note = "", "another call was closed with its payment"
		return o.decide(ctx, x, d, 0)
	}
	return err
}

// truth is the verdict that the bank's book gives.
func truth(d *client.DecisionRequest, found []bank.Payment) {
	d.Verdict = client.VerdictNotTaken
	if len(found) > 0 {
		d.Verdict, d.Reference = client.VerdictTaken, found[0].ID
		d.Result, _ = json.Marshal(payer.Receipt{PaymentID: found[0].ID})
	}
}

// overlap decides about an effect that was held because of another; false while the
// other is open.
func (o *operators) overlap(x client.EffectView, d *client.DecisionRequest) bool {
	for _, other := range x.Overlaps {
		if other.State == "taken" {
			d.Verdict, d.SameAs = client.VerdictSameAs, other.EffectID
			return true
		}
	}
	return false
}

// decide records a verdict, sometimes twice, and sometimes for what has moved on.
func (o *operators) decide(ctx context.Context, x client.EffectView, d client.DecisionRequest, manner uint64) error {
	d.DecisionID = fmt.Sprint(x.EffectID, "-", x.Version, "-", d.Verdict, "-", d.Reference)
	o.count(d.Verdict)
	if manner == 19 && x.Version > 1 {
		stale := d
		stale.Version--
		stale.DecisionID += "-stale"
		o.count("for an old version")
		// "concurring" is no decision: somebody had said the same meanwhile.
		if a, err := o.w.people[1].Decide(ctx, x.EffectID, stale); err == nil && a.Status == "decided" {
			o.w.trouble("a decision for version %d of %s was taken at version %d", stale.Version, x.EffectID, x.Version)
		}
	}
	_, err := o.w.people[0].Decide(ctx, x.EffectID, d)
	if err != nil || manner < 16 || manner > 18 {
		return err
	}
	o.count("twice")
	if _, err := o.w.people[0].Decide(ctx, x.EffectID, d); err != nil {
		return err
	}
	d.DecisionID += "-again"
	_, err = o.w.people[1].Decide(ctx, x.EffectID, d)
	return err
}

// against decides the opposite of what the bank's book has: not taken, with the payment
// denied by its name; or taken, by another's payment where there is one.
func (o *operators) against(ctx context.Context, x client.EffectView, invoice string, book map[string][]bank.Payment, d client.DecisionRequest) error {
	truth(&d, book[invoice])
	d.Note = "against what the bank's book has"
	if d.Verdict == client.VerdictTaken {
		d.Verdict, d.Reference, d.Result = client.VerdictNotTaken, "", nil
		for _, p := range book[invoice] {
			d.NotOurs = append(d.NotOurs, p.ID)
		}
	} else {
		d.Verdict, d.Reference = client.VerdictTaken, "made up for "+x.EffectID
		if draw(o.p.Seed, 2, "whose", invoice) == 0 {
			for _, other := range slices.Sorted(maps.Keys(book)) {
				if other != invoice && strings.HasPrefix(other, fmt.Sprintf("s%d-r%d-", o.p.Seed, o.p.Round)) {
					d.Reference = book[other][0].ID
					break
				}
			}
		}
		d.Result, _ = json.Marshal(payer.Receipt{PaymentID: d.Reference})
	}
	// Before it is answered: the answer may be lost.
	o.mu.Lock()
	o.wrong[invoice] = true
	o.mu.Unlock()
	o.count("against the truth")
	if err := o.decide(ctx, x, d, 0); err != nil {
		o.count("against the truth: " + refusalOf(err))
		truth(&d, book[invoice])
		d.NotOurs, d.Note = nil, "refused, so by the book"
		if d.Verdict == client.VerdictNotTaken {
			d.Reference, d.Result = "", nil
		}
		return o.decide(ctx, x, d, 0)
	}
	return nil
}
