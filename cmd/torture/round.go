package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"quittance/client"
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
	for _, x := range effects {
		if x.Attempts < 2 || x.Suspected > 0 {
			continue
		}
		asked := time.Now()
		if _, err := w.people[0].LookUp(ctx, x.ID); err != nil {
			return fmt.Errorf("couldn't have %s looked up: %w", x.ID, err)
		}
		for end := asked.Add(15 * time.Second); time.Now().Before(end); pause(ctx, 50*time.Millisecond) {
			v, err := w.people[0].Effect(ctx, x.ID)
			if err != nil {
				return err
			}
			if answered(v, asked) {
				break
			}
		}
	}
	return nil
}

// answered tells whether a look-up that was asked for since has its answer.
func answered(v client.EffectView, since time.Time) bool {
	return !v.LookingUp && len(v.LookUps) > 0 && v.LookUps[0].AskedAt.After(since)
}

// again repeats what a database that comes up again may refuse.
func again[T any](ctx context.Context, f func() (T, error)) (v T, err error) {
	for end := time.Now().Add(patience); ; pause(ctx, time.Second) {
		if v, err = f(); err == nil || time.Now().After(end) || ctx.Err() != nil {
			return v, err
		}
	}
}
