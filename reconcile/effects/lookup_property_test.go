package effects_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"quittance/reconcile/effects"
)

// fate is what became of a payment at a bank that keeps what its policy declares: it shows
// everything once the moment has passed, and before that what it likes.
type fate struct {
	name    string
	records []payment // by invoice, once it landed
	taken   bool      // exactly one final record that matches: "taken" may be proven
	free    bool      // nothing that took effect: "not taken" may be proven
}

func fates(i int) []fate {
	invoice := fmt.Sprintf("INV-%d", i)
	good := paid(invoice, "10.00")
	with := func(p payment, edit func(*payment)) payment { edit(&p); return p }
	return []fate{
		{name: "never landed", free: true},
		{name: "landed", records: []payment{good}, taken: true},
		{name: "another sum", records: []payment{with(good, func(p *payment) { p.Amount = "10.01" })}},
		{name: "another currency", records: []payment{with(good, func(p *payment) { p.Currency = "EUR" })}},
		{name: "not final", records: []payment{with(good, func(p *payment) { p.Status = "processing" })}},
		{name: "twice", records: []payment{good, with(good, func(p *payment) { p.ID += "-b" })}},
		{name: "maybe", records: []payment{with(good, func(p *payment) { p.Maybe = true })}},
		{name: "somebody else's record", records: []payment{with(good, func(p *payment) { p.ID = "P-owned" })}, free: true},
		{name: "cancelled, not by our key", records: []payment{with(good, func(p *payment) { p.Status = "cancelled" })}, free: true},
	}
}

// No sequence of answers, errors, delays and repeats proves what did not happen, proves
// that what happened did not, or lets one record prove two effects.
func TestNoSequenceOfAnswersProvesWhatIsNotSo(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed, 2026))
			bank := newDownstream(t)
			w := newWorld(t, bank.policy("lands_within: 10m", "visible_after: 5m"))
			owner := w.proceed(w.open("owner", "pod-0"), "send_payment", pay("INV-owner", "10.00"))
			w.finish(owner, "taken", reference("P-owned"))

			const n = 45
			of := map[string]fate{}
			var ids []string
			l := w.open("run", "pod-1")
			for i := range n {
				b := w.proceed(l, "send_payment", pay(fmt.Sprintf("INV-%d", i), "10.00"))
				list := fates(i)
				of[b.EffectID] = list[i%len(list)]
				ids = append(ids, b.EffectID)
			}
			w.die(l)
			shown := map[string]bool{} // landed and visible for good
			mood := func() {
				broken, status := rnd.IntN(5), []int{401, 404, 500, 502}[rnd.IntN(4)]
				bank.set(func() {
					bank.payments = nil
					for id, f := range of {
						if shown[id] || rnd.IntN(2) == 0 { // a search that lags shows what it likes
							bank.payments = append(bank.payments, f.records...)
						}
					}
					bank.answer = func(rw http.ResponseWriter, _ *http.Request) bool {
						switch broken {
						case 0:
							rw.WriteHeader(status)
						case 1:
							_, _ = rw.Write([]byte(`{"data":[],"has_more":true}`))
						case 2:
							_, _ = rw.Write([]byte(`{"data":[`))
						default:
							return false
						}
						return true
					}
				})
			}
			step := func() {
				mood()
				for _, id := range ids {
					if rnd.IntN(3) == 0 {
						continue
					}
					d := []time.Duration{0, 20 * time.Second, 31 * time.Second, 10 * time.Minute}[rnd.IntN(4)]
					w.exec(`UPDATE lookup_schedule SET next_lookup_at = clock_timestamp() WHERE effect_id = $1::uuid AND plan <> 'none'`, id)
					w.age(id, d)
				}
				w.look()
				w.settle()
				for _, id := range ids {
					w.honest(id, of[id])
				}
			}
			for range 4 {
				step()
			}
			for _, id := range ids { // the moment passes: what landed is shown from now on
				w.passLong(id)
				shown[id] = true
			}
			for range 8 {
				step()
			}
			bank.set(func() { bank.answer = nil })
			closed := map[string]int{}
			for range 3 {
				bank.set(func() {
					bank.payments = nil
					for _, f := range of {
						bank.payments = append(bank.payments, f.records...)
					}
				})
				for _, id := range ids {
					w.exec(`UPDATE lookup_schedule SET next_lookup_at = clock_timestamp() WHERE effect_id = $1::uuid AND plan <> 'none'`, id)
					w.age(id, time.Minute)
				}
				w.look()
			}
			for _, id := range ids {
				v := w.honest(id, of[id])
				closed[of[id].name+": "+v.State]++
				// What a lagging search showed and took away stays a person's question; nothing else does.
				if (of[id].taken && v.State != string(effects.Taken)) && !w.vanished(id) {
					t.Errorf("%s: %s is %s in the end", of[id].name, id, v.State)
				}
			}
			if closed["landed: taken"] == 0 || closed["never landed: cleared"] == 0 {
				t.Errorf("nothing was ever proven: %v", closed)
			}
		})
	}
}

// honest checks an effect against what became of it.
func (w *world) honest(id string, f fate) effects.EffectView {
	w.t.Helper()
	v := w.effect(id)
	switch {
	case v.State == string(effects.Taken) && !f.taken, v.State == string(effects.Cleared) && !f.free:
		w.t.Fatalf("%s: %s by %s, reference %q", f.name, v.State, v.DecidedBy, v.Reference)
	case v.State != string(effects.Taken) && v.State != string(effects.Cleared) && v.State != string(effects.Interrupted):
		w.t.Fatalf("%s: %s", f.name, v.State)
	}
	return v
}

// vanished tells whether an earlier look showed a record that the last one did not.
func (w *world) vanished(id string) bool {
	for _, l := range w.looks(id).Looks {
		if l.Reason == "vanished" {
			return true
		}
	}
	return false
}

// age moves what was looked at of an effect back in time.
func (w *world) age(id string, d time.Duration) {
	w.t.Helper()
	if d == 0 {
		return
	}
	w.exec(`ALTER TABLE lookups DISABLE TRIGGER lookups_append_only`)
	w.exec(`UPDATE lookups SET asked_at = asked_at - $2 * interval '1 microsecond', answered_at = answered_at - $2 * interval '1 microsecond',
		read = jsonb_set(read::jsonb, '{asked_at}', to_jsonb((read::jsonb->>'asked_at')::timestamptz - $2 * interval '1 microsecond'))::text
		WHERE effect_id = $1::uuid`, id, d.Microseconds())
	w.exec(`ALTER TABLE lookups ENABLE TRIGGER lookups_append_only`)
}

// passLong lets an attempt have begun long ago; what was looked at before was looked at
// before its moment.
func (w *world) passLong(id string) {
	w.t.Helper()
	w.age(id, time.Hour)
	w.exec(`ALTER TABLE attempts DISABLE TRIGGER attempts_append_only`)
	w.exec(`UPDATE attempts SET begun_at = begun_at - interval '1 hour', deadline = deadline - interval '1 hour' WHERE effect_id = $1::uuid`, id)
	w.exec(`ALTER TABLE attempts ENABLE TRIGGER attempts_append_only`)
	w.exec(`UPDATE effects SET deadline = deadline - interval '1 hour', moment = moment - interval '1 hour' WHERE id = $1::uuid`, id)
}
