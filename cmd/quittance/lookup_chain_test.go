package main

import (
	"bytes"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"quittance/internal/chain"
	"quittance/ledger/ledgertest"
	"quittance/reconcile/evm"
)

func TestALookUpOnAChainIsTestedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	c := chain.StartWith(t, chain.Options{Time: time.Now().Add(-time.Minute)})
	token, shop := c.Deploy(chain.Memo), chain.NewWallet("shop").Address
	c.Mint(token, c.Account(1), 1000)
	paid := c.Send(c.Account(1), token, evm.CallData("transferWithMemo(address,uint256,bytes32)", shop, big.NewInt(700), evm.Keccak([]byte("INV-7"))))
	c.Finalize()
	file := policyFile(t, fmt.Sprintf(`tools:
  memo_pay:
    business_key: "{invoice}"
    lookup:
      memo: {rpc: %s, chain_id: %d, asset: "%s", recipient: "{arguments.to}", value: "{arguments.value}", memo: "{business_key}", digest: true}
      allow_private: true
  sign_pay:
    business_key: "{invoice}"
    lookup:
      eip3009: {rpc: %s, chain_id: 1, asset: "%s", recipient: "{arguments.to}", value: "{arguments.value}", authorizer: "{arguments.from}", nonce: "{arguments.nonce}", valid_before: "{arguments.end}"}
      allow_private: true
`, c.URL, c.ID, token, c.URL, token))
	url := ledgertest.URL(t)
	test := func(tool string) (int, string) {
		var out bytes.Buffer
		getenv := func(name string) string { return map[string]string{"DATABASE_URL": url}[name] }
		code := run(t.Context(), []string{"lookup", "test", "--policy", file, tool, "INV-7"}, getenv, &out, &out)
		return code, out.String()
	}
	code, out := test("memo_pay")
	for _, want := range []string{"inconclusive (no_call)", "memo on eip155:31337, asset " + token.String(), paid.Hash.String() + ":0", "700 atomic units of " + token.String(), "transferred"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if code != exitOK {
		t.Errorf("exit %d", code)
	}
	if code, out = test("sign_pay"); code != exitFailed || !strings.Contains(out, "this call has no arguments.from") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}
