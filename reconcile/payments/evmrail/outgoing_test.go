package evmrail_test

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"quittance/internal/chain"
	"quittance/ledger/money"
	"quittance/reconcile/evm"
	"quittance/reconcile/payments/evmrail"
	"quittance/reconcile/policy"
	"quittance/reconcile/refunds"
)

// What was sent back is confirmed by a final block alone, and by nothing but the amount at
// the recipient.
func TestWhatWasSentBackIsLookedFor(t *testing.T) {
	t.Parallel()
	c := chain.Start(t)
	token := c.Deploy(chain.Dollar)
	c.Mint(token, c.Account(5), 100_000_000)
	c.Finalize()
	p, mistakes := policy.Load("quittance.yaml", fmt.Appendf(nil, "rails:\n  eip155:%d: {allow_private: true, rpc: [%q]}\n", c.ID, c.URL))
	if p == nil {
		t.Fatal(mistakes)
	}
	network := evmrail.Networks(func() *policy.Policy { return p }, c.Now)(fmt.Sprintf("eip155:%d", c.ID))
	payer := c.Account(8)
	ask := func(tx evm.Hash, amount string) refunds.Sight {
		t.Helper()
		a, err := money.AtomicOf(amount)
		must(t, err)
		return network.Outgoing(t.Context(), refunds.Question{Asset: token.String(), Recipient: payer.String(), Tx: tx.String(), Amount: a, Since: time.Now().Add(-time.Hour)})
	}
	sent := c.Send(c.Account(5), token, evm.CallData("transfer(address,uint256)", payer, big.NewInt(4_200_000)))
	if s := ask(sent.Hash, "4200000"); s.Seen != refunds.NotSeen || s.Final {
		t.Errorf("before it is final: %+v", s)
	}
	failed := c.SendFailing(c.Account(6), token, evm.CallData("transfer(address,uint256)", payer, big.NewInt(4_200_000)))
	c.Finalize()
	if s := ask(sent.Hash, "4200000"); s.Seen != refunds.Arrived || !s.Final || s.Block != int64(sent.Block) {
		t.Errorf("%+v", s)
	}
	if s := ask(sent.Hash, "4200001"); s.Seen != refunds.Elsewhere || !s.Final {
		t.Errorf("another amount: %+v", s)
	}
	if s := ask(failed.Hash, "4200000"); s.Seen != refunds.Failed || !s.Final {
		t.Errorf("one that failed: %+v", s)
	}
	if s := ask(evm.Keccak([]byte("nothing")), "4200000"); s.Seen != refunds.NotSeen {
		t.Errorf("one that is not there: %+v", s)
	}
}
