package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"quittance/cmd/quittance/demo/bank"
	"quittance/ledger/proof"
)

// play plays a round and checks it.
func (w *world) play(ctx context.Context, p plan) (found, *operators, error) {
	for _, keys := range []bank.Keys{bank.Honour, bank.Ignore} {
		w.pay[keys].slow(delay{}, 0)
	}
	// What the third kind's network holds back still lands in time: sent by the deadline,
	// it is there well before lands_within is over.
	w.pay[bankOf[p.Kind]].slow(delay{share: p.Late, most: delayed}, draw(p.Seed, 1<<62, "delay", p.Round))

	people := newOperators(w, p)
	at, end := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { people.work(at) })
	beside.Go(func() { w.storm(at, p.Storms) })
	lanes := make([]*lane, len(p.Runs))
	var working sync.WaitGroup
	var failed sync.Map
	for i, r := range p.Runs {
		lanes[i] = &lane{w: w, p: p, r: r, let: func() {}}
		working.Go(func() {
			if _, err := lanes[i].run(ctx); err != nil {
				failed.Store(r.Name, err)
			}
		})
	}
	working.Wait()
	w.pay[bankOf[p.Kind]].settle()
	end()
	beside.Wait()
	for name, err := range failed.Range {
		return found{}, people, fmt.Errorf("%s: %w", name, err.(error))
	}
	if err := ctx.Err(); err != nil {
		return found{}, people, err
	}
	var all []told
	stories := map[string]string{}
	for _, l := range lanes {
		stories[l.r.Name] = l.story()
		all = append(all, l.told...)
	}
	f, err := w.facts(ctx, p, people)
	if err != nil {
		return found{}, people, err
	}
	f.Told, f.Stories = all, stories
	return check(f), people, nil
}

// storm lets everything befall that the plan has for servers, banks, database and links.
func (w *world) storm(ctx context.Context, list []storm) {
	for _, s := range list {
		if pause(ctx, s.After); ctx.Err() != nil {
			return
		}
		m := map[string]*member{"server0": w.servers[0], "server1": w.servers[1], "keeps": w.banks[bank.Honour], "ignores": w.banks[bank.Ignore]}[s.To]
		links := map[string][]*link{
			"server0": {w.servers[0].link}, "server1": {w.servers[1].link}, "postgres": {w.postgres},
			"keeps": {w.pay[bank.Honour], w.ask[bank.Honour]}, "ignores": {w.pay[bank.Ignore], w.ask[bank.Ignore]}, "asking": {w.ask[bank.Ignore]},
		}[s.To]
		switch {
		case s.Do == "cut":
			w.cuts.Add(1)
			for _, k := range links {
				k.cut(s.For)
			}
		case s.Do == "stop":
			m.halt(s.For)
		case s.To == "postgres":
			if err := w.killPostgres(); err != nil {
				w.trouble("couldn't kill PostgreSQL: %v", err)
			}
		default:
			m.kill()
		}
	}
}

// facts reads what a round has left. At the bank that enforces nothing everything that
// was tried twice is looked up once more before: the looks of 10 minutes, an hour and a
// day after a decision, which nobody here can wait for.
func (w *world) facts(ctx context.Context, p plan, people *operators) (f facts, err error) {
	var names []string
	for _, r := range p.Runs {
		names = append(names, r.Name)
	}
	f = facts{Kind: p.Kind, Runs: p.Runs, Wrong: people.wrong, Booked: map[string][]string{}}
	if f.Stale, err = again(ctx, func() ([]string, error) { return proof.Stale(ctx, w.db, names) }); err != nil {
		return f, err
	}
	effects, err := again(ctx, func() ([]proof.Effect, error) { return proof.Effects(ctx, w.db, names) })
	if err != nil {
		return f, err
	}
	if p.Kind == ignores {
		if err := w.lookAgain(ctx, effects); err != nil {
			return f, err
		}
	}
	if f.Effects, err = again(ctx, func() ([]proof.Effect, error) { return proof.Effects(ctx, w.db, names) }); err != nil {
		return f, err
	}
	if f.Record, err = again(ctx, func() ([]proof.Run, error) { return proof.Runs(ctx, w.db, names) }); err != nil {
		return f, err
	}
	book, err := w.booked(p.Kind)
	if err != nil {
		return f, err
	}
	for invoice, list := range book {
		for _, payment := range list {
			f.Booked[invoice] = append(f.Booked[invoice], payment.ID)
		}
	}
	if f.Damage, err = again(ctx, w.verify); err != nil {
		return f, err
	}
	w.mu.Lock()
	f.Trouble, w.troubles = w.troubles, nil
	w.mu.Unlock()
	return f, nil
}

// lookAgain has every effect of more than one attempt looked up, and waits for the answers.
func (w *world) lookAgain(ctx context.Context, effects []proof.Effect) error {
	var looking sync.WaitGroup
	free := make(chan struct{}, atOnce)
	errs := make([]error, len(effects))
	for i, x := range effects {
		if x.Attempts < 2 || x.Suspected > 0 {
			continue
		}
		free <- struct{}{}
		looking.Go(func() {
			defer func() { <-free }()
			if err := w.lookUp(ctx, x.ID); err != nil {
				errs[i] = fmt.Errorf("couldn't have %s looked up: %w", x.ID, err)
			}
		})
	}
	looking.Wait()
	return errors.Join(errs...)
}

// lookUp has an effect looked up now, and waits for the answer.
func (w *world) lookUp(ctx context.Context, id string) error {
	before, err := w.answered(ctx, id, time.Time{}) // what is under way may have been asked too early
	if err != nil {
		return err
	}
	if _, err = w.people[0].LookUp(ctx, id); err != nil {
		return err
	}
	_, err = w.answered(ctx, id, before)
	return err
}

// answered waits until no look at an effect is under way and one was asked after that time.
// It returns when the last one was asked.
func (w *world) answered(ctx context.Context, id string, after time.Time) (last time.Time, err error) {
	for end := time.Now().Add(patience); ; pause(ctx, 100*time.Millisecond) {
		v, err := w.people[0].Effect(ctx, id)
		if err != nil {
			return last, err
		}
		if len(v.LookUps) > 0 {
			last = v.LookUps[0].AskedAt
		}
		if !v.LookingUp && (after.IsZero() || last.After(after)) {
			return last, nil
		}
		if time.Now().After(end) {
			return last, errors.New("nobody answers")
		}
	}
}

// again repeats what a database that comes up again may refuse.
func again[T any](ctx context.Context, f func() (T, error)) (v T, err error) {
	for end := time.Now().Add(patience); ; pause(ctx, time.Second) {
		if v, err = f(); err == nil || time.Now().After(end) || ctx.Err() != nil {
			return v, err
		}
	}
}
