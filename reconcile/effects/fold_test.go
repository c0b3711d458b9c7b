package effects_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"quittance/reconcile/effects"
)

// The tools of the property test: with a business key and without, held repeats and
// allowed ones, a second person, a vendor's own key, and a request that lands late.
const foldPolicy = `
release: {hold: 0s, not_taken_hold: 20ms}
tools:
  pay: {business_key: "{invoice}", amount: {value: amount, currency: currency, unit: major}, deadline: 60s, second_person_above: {USD: "90.00"}}
  late: {business_key: "{invoice}", deadline: 60s, lands_within: 1s}
  note: {deadline: 60s}
`

// player drives the engine with random calls and remembers what it was told.
type player struct {
	*world
	servers [2]*effects.Engine
	rnd     *rand.Rand
	leases  map[string]effects.Lease
	began   []*effects.BeginAnswer // every attempt there ever was
	seen    []string               // every effect
	calls   []effects.Begin        // every call that was cleared
	refs    int
	steps   int
	done    map[string]int // calls that had an effect, by name
}

func (p *player) pick(n int) int { return p.rnd.IntN(n) }

func (p *player) server() *effects.Engine { return p.servers[p.pick(2)] }

// run is one of a few runs; new ones come as old ones end.
func (p *player) run() string { return fmt.Sprintf("run-%d", p.steps/60+p.pick(6)) }

// said fails the test for any error that is not an answer.
func (p *player) said(call string, err error) {
	p.t.Helper()
	var r *effects.Refusal
	if err != nil && !errors.As(err, &r) {
		p.t.Fatalf("%s: %v", call, err)
	}
	if err == nil {
		p.done[call]++
	}
}

func (p *player) know(id string) {
	if id != "" && !slices.Contains(p.seen, id) {
		p.seen = append(p.seen, id)
	}
}

func (p *player) open() {
	run := p.run()
	l, err := p.server().Open(p.t.Context(), effects.Open{Account: p.account, RunID: run, Agent: "bot", Worker: fmt.Sprintf("w%d", p.pick(3)), AttemptID: fmt.Sprint(p.pick(4))})
	p.said("open", err)
	if err == nil {
		p.leases[run] = l
	}
}

func (p *player) claim() {
	l, err := p.server().Claim(p.t.Context(), effects.Claim{Account: p.account, Agents: []string{"bot"}, Worker: "pool", AttemptID: fmt.Sprint(p.pick(1000))})
	p.said("claim", err)
	if err == nil && l != nil {
		p.leases[l.RunID] = *l
	}
}

// call is a random begin; few different calls, so that they meet.
func (p *player) call(run string) effects.Op {
	if n := len(p.calls); n > 0 && p.pick(4) == 0 { // one that ran before, by whoever holds its run now
		b := p.calls[n-1-p.pick(min(n, 12))]
		b.Lease = p.leases[b.RunID].Token
		return effects.Op{Begin: &b}
	}
	tool := []string{"pay", "pay", "late", "note"}[p.pick(4)]
	args := fmt.Sprintf(`{"invoice":"INV-%d","amount":"%d0.00","currency":"USD"}`, p.steps/90+p.pick(4), 1+9*p.pick(2))
	if tool == "pay" && p.pick(12) == 0 {
		args = `{"amount":"10.00","currency":"USD"}`
	}
	b := &effects.Begin{Account: p.account, RunID: run, Lease: p.leases[run].Token, AttemptID: fmt.Sprint("a", p.pick(3)), Tool: tool, Arguments: []byte(args), Occurrence: 1 + p.pick(2)*p.pick(2)}
	if p.pick(10) == 0 {
		b.Key, b.Occurrence = fmt.Sprint("minted-", p.pick(3)), 1
	}
	return effects.Op{Begin: b}
}

// word is a random finish of any attempt there ever was, or of one that was not.
func (p *player) word() effects.Op {
	f := &effects.Finish{Account: p.account, Outcome: []string{"taken", "taken", "failed", "no idea"}[p.pick(4)]}
	switch {
	case len(p.began) == 0 || p.pick(30) == 0:
		f.RunID, f.Tool, f.Arguments, f.Fence = p.run(), "note", []byte(fmt.Sprintf(`{"kept":%d}`, p.pick(3))), 1
	default:
		b := p.began[len(p.began)-1-min(p.pick(8)*p.pick(4), len(p.began)-1)]
		f.EffectID, f.Fence = b.EffectID, b.Fence
		if p.pick(8) == 0 {
			f.Fence = int64(p.pick(4))
		}
	}
	if f.Outcome == "taken" && p.pick(3) > 0 {
		p.refs++
		f.Reference = fmt.Sprint("ref-", p.refs-p.pick(2)*p.pick(2))
	}
	return effects.Op{Finish: f}
}

func (p *player) apply() {
	var ops []effects.Op
	for range 1 + p.pick(2)*p.pick(4) {
		if p.pick(5) < 3 {
			ops = append(ops, p.call(p.run()))
		} else {
			ops = append(ops, p.word())
		}
	}
	answers, err := p.server().Apply(p.t.Context(), ops)
	if err != nil {
		p.t.Fatalf("apply: %v", err)
	}
	for i, a := range answers {
		switch {
		case a.Begin != nil:
			p.done["begin "+a.Begin.Do]++
			p.know(a.Begin.EffectID)
			if a.Begin.Do == "proceed" {
				p.began = append(p.began, a.Begin)
				p.calls = append(p.calls, *ops[i].Begin)
			}
		case a.Finish != nil:
			p.done["finish "+a.Finish.State]++
		case a.Refusal != nil:
			if a.Refusal.Code == effects.CodeInvalid {
				p.t.Fatalf("%+v: %v", ops[i], a.Refusal)
			}
			p.done["refused "+string(a.Refusal.Code)]++
			p.know(a.Refusal.EffectID)
		}
	}
}

func (p *player) somebody() effects.Person {
	if p.pick(2) == 0 {
		return p.person
	}
	return p.other
}

func (p *player) judge() {
	if len(p.seen) == 0 {
		return
	}
	id := p.seen[p.pick(len(p.seen))]
	if page, err := p.Queue(p.t.Context(), effects.QueueQuery{}); err == nil && len(page.Items) > 0 && p.pick(4) > 0 {
		id = page.Items[p.pick(len(page.Items))].EffectID
	}
	v := p.effect(id)
	d := effects.Decide{EffectID: id, Version: v.Version - int64(p.pick(9)/8), Note: "seen", Recovery: p.pick(2) == 0,
		Verdict: []effects.Verdict{effects.VerdictTaken, effects.VerdictNotTaken, effects.VerdictStop, effects.VerdictAllow, effects.VerdictSameAs, effects.VerdictAcknowledge, effects.VerdictSendBack}[p.pick(7)]}
	switch {
	case len(v.Contradictions) > 0 && p.pick(2) == 0:
		d.Verdict = effects.VerdictAcknowledge
	case v.State == "interrupted" && p.pick(2) == 0:
		d.Verdict = []effects.Verdict{effects.VerdictTaken, effects.VerdictNotTaken, effects.VerdictStop}[p.pick(3)]
	case v.State == "held" && p.pick(2) == 0:
		d.Verdict = []effects.Verdict{effects.VerdictAllow, effects.VerdictStop}[p.pick(2)]
	}
	if v.Proposal != nil && p.pick(2) == 0 {
		d.Verdict = effects.Verdict(v.Proposal.Verdict)
	}
	if d.Verdict == effects.VerdictSameAs {
		if d.SameAs = p.seen[p.pick(len(p.seen))]; d.SameAs == id {
			return
		}
	}
	if d.Verdict == effects.VerdictTaken && p.pick(3) == 0 {
		p.refs++
		d.Reference = fmt.Sprint("ref-", p.refs)
	}
	if p.pick(3) == 0 {
		d.DecisionID = fmt.Sprint("d", p.pick(50))
	}
	got, err := p.server().Decide(p.t.Context(), p.somebody(), []effects.Decide{d})
	p.said("decide", err)
	if err == nil && got[0].Answer != nil {
		p.done["verdict "+string(d.Verdict)]++
	}
}

func (p *player) undoOne() {
	if len(p.seen) == 0 {
		return
	}
	_, err := p.server().Undo(p.t.Context(), p.somebody(), effects.Undo{EffectID: p.seen[p.pick(len(p.seen))], Note: "x"})
	p.said("undo", err)
}

// clock moves the time of one thing behind the engine's back.
func (p *player) clock() {
	switch p.pick(4) {
	case 0:
		p.passLease(p.run())
	case 1, 2:
		if len(p.seen) > 0 {
			p.passDeadline(p.seen[p.pick(len(p.seen))])
		}
	case 3:
		if len(p.seen) > 0 {
			id := p.seen[p.pick(len(p.seen))]
			if v := p.effect(id); v.State == "cleared" && v.Released {
				p.agePermission(id, 25*time.Hour)
			}
		}
	}
}

func (p *player) gap() {
	if p.pick(3) > 0 {
		return
	}
	p.said("find gap", p.FindGap(p.t.Context(), "a test"))
	p.apply()
	p.judge()
	p.said("acknowledge gap", p.AcknowledgeGap(p.t.Context(), p.person, "x"))
	for range 5 {
		p.open()
		p.apply()
	}
	p.said("end gap", p.EndGap(p.t.Context(), p.person, ""))
}

func (p *player) end() {
	run := p.run()
	l := p.leases[run]
	var err error
	switch p.pick(6) {
	case 0, 5:
		_, err = p.server().Close(p.t.Context(), p.account, run, l.Token, "finished", "")
		p.said("close", err)
	case 1, 2:
		_, err = p.server().Release(p.t.Context(), p.account, run, l.Token, "")
		p.said("release", err)
	default:
		_, err = p.server().Heartbeat(p.t.Context(), p.account, run, l.Token, "")
		p.said("heartbeat", err)
	}
}

func (p *player) step() {
	switch n := p.pick(100); {
	case n < 14:
		p.open()
	case n < 17:
		p.claim()
	case n < 45:
		p.apply()
	case n < 75:
		p.judge()
	case n < 80:
		p.undoOne()
	case n < 88:
		p.clock()
	case n < 94:
		p.said("loops", p.server().Tick(context.WithoutCancel(p.t.Context())))
	case n < 99:
		p.end()
	default:
		p.gap()
	}
}

// Whatever is called in whatever order: what is stored obeys the rules of design
// section 3 to 6 after every few calls. The seed is in the test's name.
func TestAnyOrderKeepsTheRules(t *testing.T) {
	t.Parallel()
	steps := 900
	if testing.Short() {
		steps = 300
	}
	total := map[string]int{}
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w, servers := twoServers(t, foldPolicy)
			p := &player{world: w, servers: servers, rnd: rand.New(rand.NewPCG(seed, 2)), leases: map[string]effects.Lease{}, done: map[string]int{}}
			for p.steps = range steps {
				p.step()
				if p.steps%20 == 0 {
					p.check()
				}
			}
			p.check()
			for k, n := range p.done {
				total[k] += n
			}
		})
	}
	// A run of luck that never got anywhere proves nothing.
	for _, k := range []string{
		"begin proceed", "begin replay", "finish taken", "finish failed", "finish interrupted", "finish kept", "refused run_paused", "refused stale_fence",
		"verdict taken", "verdict not_taken", "verdict stop", "verdict allow", "verdict acknowledge", "undo", "claim", "release", "close", "acknowledge gap",
	} {
		if total[k] == 0 {
			t.Errorf("%q never happened", k)
		}
	}
	if t.Failed() {
		t.Logf("%v", total)
	}
}

// The same by several players at once on two servers, who share runs, leases and
// business keys. Nothing but answers may come out, and the rules hold afterwards.
func TestAnyOrderAtOnceKeepsTheRules(t *testing.T) {
	t.Parallel()
	w, servers := twoServers(t, foldPolicy)
	w.tampered = true
	for round := range uint64(3) {
		together(6, func(i int) {
			p := &player{world: w, servers: servers, rnd: rand.New(rand.NewPCG(round, uint64(i))), leases: map[string]effects.Lease{}, done: map[string]int{}, refs: 1_000 * (int(round)*6 + i)}
			for p.steps = range 80 {
				if t.Failed() {
					return
				}
				p.step()
			}
		})
		w.check()
	}
}
