package rail_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"quittance/internal/chain"
	"quittance/reconcile/evm"
	"quittance/reconcile/rail"
)

func TestAnAuthorizationThatWasUsed(t *testing.T) {
	t.Parallel()
	w := start(t)
	a, submit := w.signed("n")
	s := w.look(a)
	w.is(s, rail.Open, false, false)
	r := w.Send(w.Account(1), w.token, submit)
	s = w.look(a)
	w.is(s, rail.Used, false, true)
	if !strings.Contains(s.Why, "waits for finality") {
		t.Error(s.Why)
	}
	w.Finalize()
	s = w.look(a)
	w.is(s, rail.Used, true, true)
	if x := s.Transfer; x == nil || x.Transaction != r.Hash || x.Position != 1 || x.Block != r.Block || x.Value.Int64() != 5_000_000 || x.Reference() != r.Hash.String()+":1" {
		t.Errorf("%+v", s.Transfer)
	}

	// What it was signed for is another matter: none of these is what was looked for.
	for what, change := range map[string]func(*rail.Authorization){
		"value":     func(a *rail.Authorization) { a.Value = big.NewInt(5_000_001) },
		"recipient": func(a *rail.Authorization) { a.PayTo = w.payer.Address },
	} {
		other := a
		change(&other)
		s := w.look(other)
		w.is(s, rail.Used, true, false)
		if !strings.Contains(s.Why, ", not ") {
			t.Errorf("another %s: %s", what, s.Why)
		}
	}
	// Another's authorization with the same nonce is another.
	other := a
	other.Authorizer = w.shop
	w.is(w.look(other), rail.Open, false, false)
}

func TestAnAuthorizationThatWasCancelled(t *testing.T) {
	t.Parallel()
	w := start(t)
	a, submit := w.signed("n")
	w.Send(w.Account(1), w.token, w.CancelCall(w.token, w.payer, a.Nonce))
	w.is(w.look(a), rail.Cancelled, false, false)
	w.Finalize()
	w.is(w.look(a), rail.Cancelled, true, false)
	if why := w.Refuses(w.Account(1), w.token, submit); why == "" {
		t.Error("and it can be used all the same")
	}
}

// The end is compared with the time of a final block, to the second.
func TestAnAuthorizationExpiresAtAFinalBlock(t *testing.T) {
	t.Parallel()
	w := start(t)
	a, submit := w.signed("n")
	end := time.Unix(a.ValidBefore.Int64(), 0)
	w.until(end.Add(-time.Second))
	w.Mine(1) // at the end, not final
	w.is(w.look(a), rail.Open, false, false)
	w.Mine(1)
	w.is(w.look(a), rail.Open, false, false) // the block of one second before the end is final
	w.Mine(1)
	s := w.look(a)
	w.is(s, rail.Expired, true, false)
	if !s.FinalAt.Equal(end) {
		t.Errorf("by a block of %s", s.FinalAt)
	}
	nobody := a
	nobody.ValidBefore = nil // nobody knows
	w.is(w.look(nobody), rail.Open, false, false)
	w.SendFailing(w.Account(1), w.token, submit)
}

// Anybody may submit it in the last second: open says that, by the chain's own rule.
func TestAnAuthorizationIsOpenToItsLastSecond(t *testing.T) {
	t.Parallel()
	w := start(t)
	a, submit := w.signed("n")
	w.is(w.look(a), rail.Open, false, false)
	w.until(time.Unix(a.ValidBefore.Int64()-2, 0))
	w.Send(w.Account(4), w.token, submit)
	w.Finalize()
	w.Mine(10)
	w.is(w.look(a), rail.Used, true, true)
}

func TestTwoTransfersInOneTransactionHaveTwoPositions(t *testing.T) {
	t.Parallel()
	w := start(t)
	batch := w.Deploy(chain.Batch)
	a, first := w.signed("a")
	b, second := w.signed("b")
	w.Send(w.Account(1), batch, chain.BatchCall(w.token, second, first))
	w.Finalize()
	sa, sb := w.look(a), w.look(b)
	w.is(sa, rail.Used, true, true)
	w.is(sb, rail.Used, true, true)
	if sa.Transfer.Position != 3 || sb.Transfer.Position != 1 || sa.Transfer.Transaction != sb.Transfer.Transaction {
		t.Errorf("%s and %s", sa.Transfer.Reference(), sb.Transfer.Reference())
	}
}

// A reorganisation takes the transfer away; mined again it has the same name, and another
// place in its block.
func TestAReorganisation(t *testing.T) {
	t.Parallel()
	w := start(t)
	a, submit := w.signed("n")
	before := w.Snapshot()
	first := w.Send(w.Account(1), w.token, submit)
	seen := w.look(a)
	w.is(seen, rail.Used, false, true)
	raw := w.Raw(first.Hash)
	w.Revert(before)
	w.Mine(3)
	w.is(w.look(a), rail.Open, false, false)
	if r := w.Receipt(first.Hash); r != nil {
		t.Fatal("the transaction was not reorganised away")
	}
	// Behind another transaction in the same block: its logs have other indexes there.
	w.Submit(w.Account(2), w.token, evm.CallData("mint(address,uint256)", w.shop, uint64(1)))
	w.SubmitRaw(raw)
	w.Mine(1)
	w.Finalize()
	again := w.look(a)
	w.is(again, rail.Used, true, true)
	if again.Transfer.Reference() != seen.Transfer.Reference() || again.Transfer.BlockHash == seen.Transfer.BlockHash {
		t.Errorf("%+v, and before %+v", again.Transfer, seen.Transfer)
	}
}

// Gone for good: another wallet's cancellation came first in the chain that won.
func TestAReorganisationInWhichItIsCancelled(t *testing.T) {
	t.Parallel()
	w := start(t)
	a, submit := w.signed("n")
	w.Mine(1)
	w.Send(w.Account(1), w.token, submit)
	w.is(w.look(a), rail.Used, false, true)
	w.Reorg(1, chain.Placed{Transaction: map[string]any{"from": w.Account(2), "to": w.token, "gas": "0x7a120",
		"data": fmt.Sprintf("0x%x", w.CancelCall(w.token, w.payer, a.Nonce))}})
	w.is(w.look(a), rail.Cancelled, false, false)
	w.Finalize()
	w.is(w.look(a), rail.Cancelled, true, false)
}

func TestAFakeOfTheSameSymbolProvesNothing(t *testing.T) {
	t.Parallel()
	w := start(t)
	fake := w.Deploy(chain.Fake)
	a, _ := w.signed("n")
	w.Send(w.Account(1), fake, evm.CallData("pretend(address,address,uint256,bytes32)", a.Authorizer, a.PayTo, a.Value, a.Nonce))
	w.Finalize()
	w.is(w.look(a), rail.Open, false, false)
	// Where its logs stand beside a real use in one transaction, they are not that one's.
	batch := w.Deploy(chain.Batch)
	short, call := w.Authorize(w.token, w.payer, w.shop, 1, "short", w.begun.Add(time.Hour))
	pretend := evm.CallData("pretend(address,address,uint256,bytes32)", a.Authorizer, a.PayTo, a.Value, short.Nonce)
	w.Send(w.Account(1), batch, twoContracts(w.token, chain.TransferCall(short, call), fake, pretend))
	w.Finalize()
	asked := a
	asked.Nonce = short.Nonce
	s := w.look(asked)
	w.is(s, rail.Used, true, false)
	if s.Transfer.Value.Int64() != 1 || s.Transfer.Asset != w.token {
		t.Errorf("%+v", s.Transfer)
	}
}

func twoContracts(a evm.Address, first []byte, b evm.Address, second []byte) []byte {
	both := chain.BatchCall(a, first, second)
	// The second target stands behind the selector, two offsets, the length and the first.
	copy(both[4+4*32:], evm.Words(b))
	return both
}
