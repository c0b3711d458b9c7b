package rail_test

import (
	"testing"
	"time"

	"quittance/internal/chain"
	"quittance/reconcile/evm"
	"quittance/reconcile/evm/node"
	"quittance/reconcile/lookup/outbound"
	"quittance/reconcile/rail"
)

// world is a chain with a token on it, a payer with money, and a shop.
type world struct {
	*chain.Chain
	t     *testing.T
	token evm.Address
	payer chain.Wallet
	shop  evm.Address
	begun time.Time
}

func start(t *testing.T) *world {
	t.Helper()
	c := chain.StartWith(t, chain.Options{Time: time.Now().Add(-time.Minute)})
	w := &world{Chain: c, t: t, token: c.Deploy(chain.Dollar), payer: chain.NewWallet("payer"), shop: chain.NewWallet("shop").Address}
	w.Mint(w.token, w.payer.Address, 1_000_000_000)
	w.begun = c.Now()
	w.Finalize()
	return w
}

// on is the chain as the code under test knows it, asked at these nodes; its own if none.
func (w *world) on(urls ...string) *rail.Chain {
	c := &rail.Chain{ID: w.ID}
	if len(urls) == 0 {
		urls = []string{w.URL}
	}
	for _, u := range urls {
		c.Nodes = append(c.Nodes, node.New(u, outbound.Options{AllowPrivate: true}))
	}
	return c
}

// signed is an authorization of 5 for the shop that is valid for an hour, and how the
// chain is asked about it.
func (w *world) signed(nonce string) (rail.Authorization, []byte) {
	w.t.Helper()
	a, s := w.Authorize(w.token, w.payer, w.shop, 5_000_000, nonce, w.begun.Add(time.Hour))
	return rail.Authorization{Network: w.on().Network(), Asset: w.token, Authorizer: a.From, Nonce: a.Nonce, ValidBefore: a.ValidBefore,
		PayTo: a.To, Value: a.Value, Since: w.begun}, chain.TransferCall(a, s)
}

func (w *world) look(a rail.Authorization, urls ...string) rail.Sighting {
	w.t.Helper()
	return w.on(urls...).Authorization(w.t.Context(), a, w.Now())
}

func (w *world) is(s rail.Sighting, state rail.State, final, match bool) {
	w.t.Helper()
	if s.State != state || s.Final != final || s.Match != match || state != rail.Unlogged && (s.Trouble != nil) != (state == rail.Unseen) || s.Why == "" {
		w.t.Errorf("%q final %v match %v, want %q %v %v: %s (%v)", s.State, s.Final, s.Match, state, final, match, s.Why, s.Trouble)
	}
	if s.Landed() != (state == rail.Used && final && match) || s.Dead() != (final && (state == rail.Cancelled || state == rail.Expired)) {
		w.t.Errorf("%q: landed %v, dead %v", state, s.Landed(), s.Dead())
	}
}

// until mines to a time in steps that no node would be stale in.
func (w *world) until(at time.Time) {
	w.t.Helper()
	for next := w.Now().Add(10 * time.Minute); next.Before(at); next = next.Add(10 * time.Minute) {
		w.At(next)
		w.Mine(1)
	}
	w.At(at)
	w.Mine(1)
}
