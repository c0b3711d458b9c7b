package onchain_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"quittance/internal/chain"
	"quittance/reconcile/canon"
	"quittance/reconcile/evm"
	"quittance/reconcile/lookup"
	"quittance/reconcile/policy"
	"quittance/reconcile/policy/read"
	"quittance/reconcile/redact"
)

// world is a chain, tokens on it, and a tool that pays there.
type world struct {
	*chain.Chain
	t            *testing.T
	dollar, memo evm.Address
	payer        chain.Wallet
	shop         evm.Address
	begun        time.Time
	asked        string // the node that the look-up asks
}

func start(t *testing.T) *world {
	t.Helper()
	c := chain.StartWith(t, chain.Options{Time: time.Now().Add(-time.Minute)})
	w := &world{Chain: c, t: t, dollar: c.Deploy(chain.Dollar), memo: c.Deploy(chain.Memo), payer: chain.NewWallet("payer"), shop: chain.NewWallet("shop").Address}
	w.Mint(w.dollar, w.payer.Address, 1_000_000_000)
	w.Mint(w.memo, w.Account(5), 1_000_000_000)
	w.Finalize()
	w.begun, w.asked = w.Now(), w.URL
	return w
}

const secretKey = "zz91-key"

// load reads a policy whose tool pay has a look-up.
func (w *world) load(tool string) *lookup.Lookup {
	w.t.Helper()
	in := read.Surroundings{Getenv: func(string) (string, bool) { return secretKey, true }}
	p, mistakes := policy.LoadIn(in, "quittance.yaml", []byte("tools:\n  pay:\n    "+strings.ReplaceAll(strings.TrimSpace(tool), "\n", "\n    ")))
	if err := mistakes.Err(); err != nil {
		w.t.Fatal(err)
	}
	return p.Tool("pay").Lookup()
}

func (w *world) eip3009(more string) *lookup.Lookup {
	w.t.Helper()
	return w.load(fmt.Sprintf(`
business_key: "{order}"
lookup:
  eip3009:
    rpc: %s/?key=${env:KEY}
    chain_id: %d
    asset: "%s"
    authorizer: "{arguments.from}"
    nonce: "{arguments.nonce}"
    valid_before: "{arguments.valid_before}"
    recipient: "{arguments.to}"
    value: "{arguments.value}"
%s
  allow_private: true
`, w.asked, w.ID, w.dollar, more))
}

// ask asks about a call at the chain's own time.
func (w *world) ask(l *lookup.Lookup, arguments map[string]any, earlier ...lookup.Read) (lookup.Answer, lookup.Seen) {
	w.t.Helper()
	raw, err := json.Marshal(arguments)
	if err != nil {
		w.t.Fatal(err)
	}
	args, err := canon.ParseObject(raw)
	if err != nil {
		w.t.Fatal(err)
	}
	lands := time.Minute
	order, _ := args.Lookup("order").Text()
	q := lookup.Question{Effect: "e", BusinessKey: order, VendorKey: "qt_1", Arguments: args, LandsWithin: &lands, AskedAt: w.Now(),
		Attempts: []lookup.Attempt{{Begun: w.begun, Deadline: w.begun.Add(time.Minute)}}}
	seen := l.Ask(w.t.Context(), redact.New([]byte("k")), q)
	a := lookup.Judge(q, l.Terms, seen, earlier)
	if stored, err := json.Marshal([]any{seen, a}); err != nil || strings.Contains(string(stored), "zz91") {
		w.t.Errorf("the key is in what is stored: %s (%v)", stored, err)
	}
	return a, seen
}

func arguments(a evm.Authorization, s evm.Signature) map[string]any {
	return map[string]any{"order": "O-1", "from": a.From.String(), "to": strings.ToLower(a.To.String()), "value": json.Number(a.Value.String()), "nonce": a.Nonce.String(),
		"valid_before": a.ValidBefore.String(), "valid_after": "0", "signature": s.String()}
}

// The table of the look-up, row by row, from the policy to the verdict.
func TestAnAuthorizationIsJudged(t *testing.T) {
	t.Parallel()
	w := start(t)
	l := w.eip3009("")
	a, s := w.Authorize(w.dollar, w.payer, w.shop, 5_000_000, "n", w.begun.Add(10*time.Minute))
	call := arguments(a, s)
	is := func(what string, v lookup.Verdict, r lookup.Reason, call map[string]any, earlier ...lookup.Read) lookup.Answer {
		t.Helper()
		got, seen := w.ask(l, call, earlier...)
		if got.Verdict != v || got.Reason != r {
			t.Errorf("%s: %q %s, want %q %s (%s, %s %s)", what, got.Verdict, got.Reason, v, r, got.Why, seen.Problem, seen.Detail)
		}
		return got
	}
	is("unused and valid", lookup.Inconclusive, lookup.NotYet, call)
	before := w.Snapshot()
	r := w.Send(w.Account(1), w.dollar, chain.TransferCall(a, s))
	early := is("used, not final", lookup.Inconclusive, lookup.NotFinal, call)
	w.Finalize()
	got := is("used", lookup.Taken, lookup.Matched, call)
	if got.Reference != r.Hash.String()+":1" || !strings.Contains(string(got.Result), r.Hash.String()) || !strings.Contains(string(got.Result), `"value":"5000000"`) {
		t.Errorf("reference %q, result %s", got.Reference, got.Result)
	}
	other := arguments(a, s)
	other["value"] = "4999999"
	is("another value", lookup.Inconclusive, lookup.Mismatch, other)
	other = arguments(a, s)
	other["to"] = w.payer.Address.String()
	is("another recipient", lookup.Inconclusive, lookup.Mismatch, other)

	// The chain that won has it cancelled: what was seen before was undone.
	w.Revert(before)
	w.Mine(1)
	second := w.Snapshot()
	w.Send(w.Account(2), w.dollar, w.CancelCall(w.dollar, w.payer, a.Nonce))
	is("cancelled, not final", lookup.Inconclusive, lookup.Possible, call, early.Read)
	w.Finalize()
	is("cancelled", lookup.NotTaken, lookup.NeverAgain, call, early.Read)
	w.Revert(second)
	w.At(w.begun.Add(10 * time.Minute))
	w.Mine(1)
	is("past its end, not final, and seen before", lookup.Inconclusive, lookup.Vanished, call, early.Read)
	is("past its end, not final", lookup.Inconclusive, lookup.NotYet, call)
	w.Finalize()
	is("unused and expired", lookup.NotTaken, lookup.NeverAgain, call, early.Read)

	for what, change := range map[string]any{"nonce": "0x12", "from": "0x", "valid_before": "2026-12-01", "value": "1.5", "to": w.shop.String()[:41], "order": nil} {
		other := arguments(a, s)
		other[what] = change
		if what == "order" {
			delete(other, "nonce")
		}
		if _, seen := w.ask(l, other); seen.Problem != lookup.Unaskable || seen.Detail == "" {
			t.Errorf("a bad %s: %q %s", what, seen.Problem, seen.Detail)
		}
	}
}

// Where the call holds the signature, a slip in its other arguments is no question about
// another authorization, which nobody ever used.
func TestTheSignatureTellsASlipInTheArguments(t *testing.T) {
	t.Parallel()
	w := start(t)
	l := w.eip3009(`    signature: "{arguments.signature}"
    valid_after: "{arguments.valid_after}"
    domain: {name: USD Coin, version: "2"}`)
	a, s := w.Authorize(w.dollar, w.payer, w.shop, 5_000_000, "n", w.begun.Add(time.Minute))
	w.Send(w.Account(1), w.dollar, chain.TransferCall(a, s))
	w.At(w.begun.Add(2 * time.Minute))
	w.Mine(1)
	w.Finalize()
	if got, seen := w.ask(l, arguments(a, s)); got.Verdict != lookup.Taken {
		t.Errorf("%s (%s %s)", got.Reason, seen.Problem, seen.Detail)
	}
	for what, change := range map[string]string{
		"from": w.shop.String(), "nonce": evm.Keccak([]byte("another")).String(), "valid_before": fmt.Sprint(w.begun.Unix()), "signature": "0x" + strings.Repeat("11", 65),
	} {
		slip := arguments(a, s)
		slip[what] = change
		if got, seen := w.ask(l, slip); got.Verdict != lookup.Inconclusive || seen.Problem != lookup.Unaskable {
			t.Errorf("another %s: %q %s", what, got.Verdict, got.Reason)
		}
	}
	received, _ := w.Authorize(w.dollar, w.payer, w.shop, 1, "r", w.begun.Add(time.Minute))
	signed := w.payer.Sign(received.Digest(w.DollarDomain(w.dollar), evm.Receive))
	if got, _ := w.ask(l, arguments(received, signed)); got.Verdict != lookup.NotTaken {
		t.Errorf("one that only the recipient may submit: %s", got.Reason)
	}
}

// A used authorization that nobody shows the log of may be ours: a person's "not taken" is
// stopped by it, too.
func TestAUsedAuthorizationWithoutALogStopsNotTaken(t *testing.T) {
	t.Parallel()
	w := start(t)
	a, s := w.Authorize(w.dollar, w.payer, w.shop, 5_000_000, "n", w.begun.Add(10*time.Minute))
	w.Send(w.Account(1), w.dollar, chain.TransferCall(a, s))
	w.Finalize()
	w.asked = w.Behind(func(method string, _ json.RawMessage, a chain.Answer) chain.Answer {
		if method == "eth_getLogs" {
			return chain.Answer{Result: json.RawMessage(`[]`)}
		}
		return a
	})
	got, _ := w.ask(w.eip3009(""), arguments(a, s))
	if got.Verdict != lookup.Inconclusive || got.Reason != lookup.Possible || len(got.Stopping()) != 1 {
		t.Errorf("%q %s, %d hits", got.Verdict, got.Reason, len(got.Hits))
	}
}

// The result is the policy's, and fits the tool's example.
func TestTheResultOfATransferIsThePolicys(t *testing.T) {
	t.Parallel()
	w := start(t)
	a, s := w.Authorize(w.dollar, w.payer, w.shop, 5_000_000, "n", w.begun.Add(10*time.Minute))
	r := w.Send(w.Account(1), w.dollar, chain.TransferCall(a, s))
	w.Finalize()
	l := w.eip3009("  result: '{\"tx\": hit.transaction, \"paid\": hit.value, \"for\": effect.business_key}'")
	got, seen := w.ask(l, arguments(a, s))
	if want := fmt.Sprintf(`{"for":"O-1","paid":"5000000","tx":"%s"}`, r.Hash); string(got.Result) != want {
		t.Errorf("%s (%s %s)", got.Result, seen.Problem, seen.Detail)
	}
	l = w.eip3009("  result: '{\"tx\": hit.tx}'") // a slip
	if got, seen = w.ask(l, arguments(a, s)); got.Verdict != lookup.Inconclusive || seen.Problem != lookup.RuleFailed {
		t.Errorf("%q %s %s", got.Verdict, seen.Problem, seen.Detail)
	}
}
