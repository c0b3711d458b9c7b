package payments_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	rows "quittance/ledger/payments"
	"quittance/reconcile/effects"
	"quittance/reconcile/payments"
)

// The walks drive the engine the way that the model in shared/model does: payers who sign
// again only when they are told to, gateways that die anywhere and come back with old
// fences, a chain that drops what it had, time, and people. What really happened is kept
// beside the database, and after every step the two must agree: walk_props_test.go. What
// gateways do is in walk_gateway_test.go, what the chain, time and people do in
// walk_world_test.go.
//
// QUITTANCE_WALKS is how long to walk, as a duration; QUITTANCE_SEED which walk to see again.

// signature is an authorization in the real world.
type signature struct {
	n                                int
	signed, sent, mined, final, dead bool
	dropped                          bool // by a reorganisation, once
}

// process is a gateway's try at a payment: at is what it does next.
type process struct {
	id    string
	fence int64
	auth  int // 0: it was given none
	at    string
	paid  bool
	done  bool // it was told that the work is done
	begun *effects.BeginAnswer
}

// walk is the real world of two payment ids that want the same thing.
type walk struct {
	*world
	r         *rand.Rand
	gateway   string
	ids       []string
	quote     string
	sigs      []*signature // of alice, then the last of bob
	procs     []*process
	performed map[string]int          // how often the work was really done
	offered   map[string]map[int]bool // under an id, by its own payer; true: before it was refused
	owner     map[string]string       // who claimed an id first
	fences    map[string]int64
	frozen    map[string]string
	told      []string // what happened, for whoever reads a failure
	base      int
	pruned    bool
	rogue     bool // whoever saw an authorization may send it
}

const signatures = 3 // of alice; bob has one more

func (w *world) walk(r *rand.Rand, number int) *walk {
	k := &walk{
		world: w, r: r, base: 100 * (number + 1), performed: map[string]int{}, offered: map[string]map[int]bool{}, owner: map[string]string{},
		fences: map[string]int64{}, frozen: map[string]string{}, gateway: []string{"shop", "bank"}[r.IntN(2)], quote: fmt.Sprint("quote-", number),
	}
	if r.IntN(3) == 0 {
		k.quote = "" // nothing keeps the two ids from both being live
	}
	k.rogue = r.IntN(2) == 0
	for i := range 2 {
		k.ids = append(k.ids, fmt.Sprintf("walk-%08d-payment-%d", number, i))
	}
	for i := range signatures + 1 {
		k.sigs = append(k.sigs, &signature{n: k.base + i, signed: i == 0 || i == signatures})
	}
	return k
}

func (k *walk) tell(format string, args ...any) {
	k.told = append(k.told, fmt.Sprintf(format, args...))
}

func (k *walk) wrong(format string, args ...any) {
	k.t.Helper()
	k.t.Fatalf("%s\n  %s\n%s", fmt.Sprintf(format, args...), strings.Join(k.told, "\n  "), k.stored())
}

func (k *walk) name(id string) rows.Name {
	return rows.Name{Account: k.account, Gateway: k.gateway, PaymentID: id}
}

func (k *walk) stepOf(p *process) payments.Step {
	return payments.Step{Name: k.name(p.id), Fence: p.fence}
}

func (k *walk) known(id string) *payments.Payment {
	p, err := k.Payment(k.t.Context(), k.name(id))
	if _, ok := asRefusal(err); ok {
		return nil
	}
	if err != nil {
		k.wrong("reading %s: %v", id, err)
	}
	return p
}

// ask claims, as its payer or as another, and looks at what is answered.
func (k *walk) ask(id, payer string, auth int) {
	a := k.asked(id, 0)
	a.Gateway, a.Payer, a.Quote, a.Tool, a.Arguments = k.gateway, payer, k.quote, "fetch_page", []byte(`{"page":"`+k.ids[0]+`"}`)
	if auth >= 0 {
		a.Authorization = &payments.Offered{Nonce: nonce(k.sigs[auth].n), ValidBefore: "4102444800", Signature: "signed"}
	}
	before := k.known(id)
	got, err := k.Claim(k.t.Context(), a)
	r, refused := asRefusal(err)
	if err != nil && !refused {
		k.wrong("%s asks for %s: %v", payer[:4], id, err) // Q7: there is a row for everything
	}
	said := "proceed"
	switch {
	case refused:
		said = string(r.Code) + " " + string(r.Reason)
	case got.Do == payments.Replay:
		said = "replay"
	}
	k.tell("%s asks for %s with %d: %s", payer[:4], id[len(id)-1:], auth, said)
	if before != nil && k.owner[id] != payer {
		if !refused || r.Code != payments.CodeConflict || r.Reason != payments.ReasonPayer || r.OrderID != "" || r.PaymentID != "" || r.Poll != "" {
			k.wrong("Q5: another payer is told %+v", r)
		}
		return
	}
	if k.owner[id] == "" && (!refused || r.Code != payments.CodeConflict && r.PaymentID == id) {
		k.owner[id] = payer
	}
	if auth >= 0 && k.owner[id] == payer && (!refused || r.Code != payments.CodeConflict && r.Code != payments.CodeSpent && r.PaymentID == id) {
		if k.offered[id] == nil {
			k.offered[id] = map[int]bool{}
		}
		// Who brings another one to what was refused has been told so before.
		k.offered[id][auth] = k.offered[id][auth] || before == nil || before.State != string(payments.Refused)
	}
	switch {
	case refused && r.Code == payments.CodeSignAgain:
		k.told402(id, payer, "sign again")
	case refused:
	case got.Do == payments.Replay:
		k.replayed(id, payer, got)
	default:
		if o := got.Payment.Order; o != nil && (o.State == "failed" || o.State == "expired" || o.State == "cancelled") {
			k.wrong("Q10: proceed on an order that is %s", o.State)
		}
		k.procs = append(k.procs, &process{id: id, fence: got.Fence, auth: auth, at: "claimed", paid: got.Paid, done: got.Work == payments.Taken})
		if got.Work != payments.Taken && k.performed[id] > 0 {
			k.wrong("Q1: told that the work is %s, and it was done", got.Work)
		}
	}
}

// replayed is the frozen answer: always the same one. A 402 makes a payer sign again.
func (k *walk) replayed(id, payer string, a *payments.Answer) {
	p := a.Payment
	if p.Digest != nil {
		text := fmt.Sprint(p.Status, p.Headers, string(p.Body))
		if was, ok := k.frozen[id]; ok && was != text {
			k.wrong("another answer than before for %s: %s, was %s", id, text, was)
		}
		k.frozen[id] = text
	}
	switch {
	case p.State != string(payments.Refused):
	case p.Digest == nil:
		k.told402(id, payer, "the engine's refusal")
	case p.Status == 402:
		k.told402(id, payer, "the frozen refusal")
	}
}

// told402 is an answer upon which a payer signs again: right only when nothing that was
// offered under the id may move money any more.
func (k *walk) told402(id, payer, why string) {
	if payer != alice {
		return
	}
	// What a gateway refuses by itself says nothing of what others may send.
	ours := why == "sign again" || why == "the engine's refusal"
	for i, before := range k.offered[id] {
		if before && i < signatures && (ours || !k.rogue) && k.mayLand(i) {
			k.wrong("Q3: told to pay again (%s) while authorization %d may land, or has", why, i)
		}
	}
	for _, s := range k.sigs[:signatures] {
		if !s.signed {
			s.signed = true
			return
		}
	}
}

// mayLand tells that an authorization may still move money without a new act of its payer,
// or has moved it and nothing is owed back for that.
func (k *walk) mayLand(i int) bool {
	s := k.sigs[i]
	switch {
	case s.mined || s.final:
		var back int
		k.get(&back, `SELECT count(*) FROM transfers WHERE nonce = $1 AND reverted_at IS NULL AND class IN ('late','duplicate','failed_call','given_back')`, nonce(s.n))
		return back == 0
	case s.dead || !s.signed:
		return false
	case s.sent, k.rogue && k.seen(i):
		return true
	}
	for _, p := range k.procs {
		if p.auth != i || p.paid || p.at == "sent" || p.at == "paid" {
			continue
		}
		if p.at == "broadcast" {
			return true
		}
		x := k.known(p.id)
		if x != nil && x.Fence == p.fence && (x.State == "in_flight" || x.State == "unknown") && (x.Order == nil || x.Order.State == "created" || x.Order.State == "paying") {
			return true
		}
	}
	return false
}

// seen tells that an authorization was shown to somebody.
func (k *walk) seen(i int) bool {
	for _, id := range k.ids {
		if _, ok := k.offered[id][i]; ok {
			return true
		}
	}
	return false
}

// step lets one thing happen.
func (k *walk) step() {
	switch n := k.r.IntN(100); {
	case n < 18:
		auths := []int{-1}
		for i, s := range k.sigs[:signatures] {
			if s.signed {
				auths = append(auths, i, i)
			}
		}
		k.ask(k.ids[k.r.IntN(2)], alice, auths[k.r.IntN(len(auths))])
	case n < 20:
		k.ask(k.ids[k.r.IntN(2)], bob, signatures)
	case n < 58 && len(k.procs) > 0:
		p := k.procs[k.r.IntN(len(k.procs))]
		if k.r.IntN(map[bool]int{true: 4, false: 20}[p.at == "worked" || p.at == "working"]) == 0 {
			k.tell("the gateway of %s dies (%s)", p.id[len(p.id)-1:], p.at)
			k.gone(p)
			return
		}
		k.act(p, k.r.IntN(5) == 0)
	case n < 70:
		k.chain(k.sigs[k.r.IntN(len(k.sigs))])
	case n < 78:
		k.reconcile(k.r.IntN(len(k.sigs)))
	case n < 83:
		k.ageing(k.ids[k.r.IntN(2)])
	case n < 86:
		k.decide(k.ids[k.r.IntN(2)])
	case n < 94: // what makes take-overs likely
		id := k.ids[k.r.IntN(2)]
		k.ageing(id)
		k.decide(id)
		k.check(false)
		if k.owner[id] != "" {
			k.ask(id, k.owner[id], k.best(id))
		}
	case n < 98:
		k.check(k.r.IntN(3) == 0)
	default:
		k.person()
	}
}

func (k *walk) gone(p *process) {
	k.procs = slices.DeleteFunc(k.procs, func(x *process) bool { return x == p })
}

func TestWalks(t *testing.T) {
	t.Parallel()
	length, seed := 8*time.Second, rand.Uint64()
	if s := os.Getenv("QUITTANCE_WALKS"); s != "" {
		length, _ = time.ParseDuration(s)
	}
	if s := os.Getenv("QUITTANCE_SEED"); s != "" {
		_, _ = fmt.Sscan(s, &seed)
	}
	w := newWorld(t)
	reached := map[string]int{}
	began, walks := time.Now(), 0
	for ; walks == 0 || time.Since(began) < length; walks++ {
		k := w.walk(rand.New(rand.NewPCG(seed, uint64(walks))), walks)
		k.tell("QUITTANCE_SEED=%d walk %d at %s", seed, walks, k.gateway)
		for range 40 + k.r.IntN(60) {
			k.step()
			k.props()
		}
		k.toTheEnd()
		for _, line := range k.told {
			if i := strings.Index(line, ": "); i > 0 {
				reached[line[i+2:]]++
			}
		}
	}
	t.Logf("seed %d: %d walks; %v", seed, walks, reached)
}
