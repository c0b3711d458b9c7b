package x402

import (
	"encoding/json"
	"strings"
	"testing"
)

// What an offer holds beside the id comes back as it was offered: servers compare it.
func TestIdentifyKeepsWhatWasOffered(t *testing.T) {
	t.Parallel()
	offered := map[string]json.RawMessage{PaymentIdentifier: json.RawMessage(`{"info":{"required":true,"more":[1.10]},"schema":{"a":1}}`)}
	var p Payload
	if err := p.Identify(offered, "pay_0123456789abcdef"); err != nil {
		t.Fatal(err)
	}
	got := string(p.Extensions[PaymentIdentifier])
	for _, want := range []string{`"id":"pay_0123456789abcdef"`, `"more":[1.10]`, `"required":true`, `"schema":{"a":1}`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s: without %s", got, want)
		}
	}
	if p.Identifier() != "pay_0123456789abcdef" {
		t.Errorf("the id is %q", p.Identifier())
	}
	var plain Payload
	if err := plain.Identify(nil, "pay_0123456789abcdef"); err != nil || plain.Extensions != nil {
		t.Errorf("an extension that nobody offered: %v, %v", plain.Extensions, err)
	}
}

func TestSameMoney(t *testing.T) {
	t.Parallel()
	a := Requirements{Scheme: "exact", Network: "eip155:1", Asset: "0xAb", Amount: "1", PayTo: "0xCd"}
	for name, c := range map[string]struct {
		change func(*Requirements)
		want   bool
	}{
		"nothing":              {func(*Requirements) {}, true},
		"the case of a hash":   {func(r *Requirements) { r.Asset, r.PayTo = "0xaB", "0xcd" }, true},
		"how long it may take": {func(r *Requirements) { r.MaxTimeoutSeconds = 9 }, true},
		"the amount":           {func(r *Requirements) { r.Amount = "01" }, false},
		"the recipient":        {func(r *Requirements) { r.PayTo = "0xce" }, false},
		"the network":          {func(r *Requirements) { r.Network = "eip155:2" }, false},
	} {
		b := a
		c.change(&b)
		if a.Same(b) != c.want {
			t.Errorf("%s changed: the same %v, want %v", name, !c.want, c.want)
		}
	}
	a.Network, a.PayTo = "solana:x", "Ab"
	b := a
	b.PayTo = "aB"
	if a.Same(b) {
		t.Error("case means something outside EVM networks")
	}
}
