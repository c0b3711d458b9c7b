package chain_test

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
	"time"

	"quittance/internal/chain"
	"quittance/reconcile/evm"
)

// What is committed is what the sources say.
func TestTheContractsAreCompiledFromTheirSources(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("node", "compile.js")
	var problems bytes.Buffer
	cmd.Stderr = &problems
	got, err := cmd.Output()
	if err != nil {
		t.Fatalf("couldn't compile (`script/setup test` installs the compiler): %v\n%s", err, problems.String())
	}
	want, err := os.ReadFile("contracts.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("contracts.json is not what contracts/*.sol compile to: run `go generate ./internal/chain`")
	}
}

func TestTheChainDoesWhatTestsNeed(t *testing.T) {
	t.Parallel()
	c := chain.Start(t)
	dollar, batch := c.Deploy(chain.Dollar), c.Deploy(chain.Batch)
	payer, shop := chain.NewWallet("payer"), chain.NewWallet("shop").Address
	c.Mint(dollar, payer.Address, 10_000_000)
	until := c.Now().Add(time.Hour)
	a, s := c.Authorize(dollar, payer, shop, 4_000_000, "n1", until)
	b, sb := c.Authorize(dollar, payer, shop, 1_000_000, "n2", until)
	// Two transfers in one transaction, each with its authorization's log.
	r := c.Send(c.Account(1), batch, chain.BatchCall(dollar, chain.TransferCall(a, s), chain.TransferCall(b, sb)))
	if r.Logs != 4 || c.Balance(dollar, shop).Int64() != 5_000_000 {
		t.Errorf("%d logs, and the shop has %s", r.Logs, c.Balance(dollar, shop))
	}
	if why := c.Refuses(c.Account(1), dollar, chain.TransferCall(a, s)); why == "" {
		t.Error("an authorization is used twice")
	}
	cancelled, sc := c.Authorize(dollar, payer, shop, 1, "n3", until)
	c.Send(c.Account(2), dollar, c.CancelCall(dollar, payer, cancelled.Nonce))
	if why := c.Refuses(c.Account(1), dollar, chain.TransferCall(cancelled, sc)); why == "" {
		t.Error("a cancelled authorization is used")
	}
	expired, se := c.Authorize(dollar, payer, shop, 1, "n4", until)
	before := c.Snapshot()
	c.At(until)
	c.Mine(1)
	c.SendFailing(c.Account(1), dollar, chain.TransferCall(expired, se))
	c.Revert(before)
	if sent := c.Send(c.Account(1), dollar, chain.TransferCall(expired, se)); !sent.OK {
		t.Error("before its end an authorization is refused")
	}
	// A reorganisation takes a transaction out of the chain.
	last := c.Submit(c.Account(1), dollar, evm.CallData("mint(address,uint256)", shop, uint64(1)))
	c.Mine(1)
	if c.Receipt(last) == nil {
		t.Fatal("the transaction is not mined")
	}
	c.Reorg(1)
	if c.Receipt(last) != nil {
		t.Error("the transaction is still in the chain")
	}
	c.Finalize()
}
