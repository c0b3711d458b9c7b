package desk_test

import (
	"strings"
	"testing"

	"quittance/reconcile/effects"
)

// The page of the later of two honest, equal refunds leads to the first and says what both
// come to. How much was paid in all (50.00) no policy tells, so no page can.
func TestBC026_ThePageShowsBothAndTheirSum(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, `
tools:
  refund:
    summary: "Refund {amount} {currency} of {payment}"
    amount: {value: amount, currency: currency, unit: major}
`)
	l, err := w.engine.Open(t.Context(), effects.Open{Account: w.account, RunID: "run", Agent: "bot", Worker: "pod", AttemptID: "s"})
	must(t, err)
	refund := func(n int) string {
		a, err := w.engine.Apply(t.Context(), []effects.Op{{Begin: &effects.Begin{
			Account: w.account, RunID: "run", Lease: l.Token, AttemptID: string(rune('a' + n)), Tool: "refund", Occurrence: n, Arguments: []byte(`{"payment":"pay_5","amount":"10.00","currency":"EUR"}`),
		}}})
		must(t, err)
		if a[0].Begin == nil {
			t.Fatalf("%+v", a[0].Refusal)
		}
		return a[0].Begin.EffectID
	}
	finish := func(id, reference string) {
		a, err := w.engine.Apply(t.Context(), []effects.Op{{Finish: &effects.Finish{Account: w.account, EffectID: id, Fence: 1, Outcome: "taken", Reference: reference}}})
		must(t, err)
		if a[0].Refusal != nil {
			t.Fatalf("%+v", a[0].Refusal)
		}
	}
	v := w.signedIn("vera")
	one := refund(1)
	finish(one, "re_1")
	two := refund(2)
	if text := v.get("/effects/" + two).text(); !strings.Contains(text, "1 of 2 identical calls took effect, 10.00 EUR in all") {
		t.Error("while the second is under way, only the first counts")
	}
	finish(two, "re_2")
	three := refund(3)
	finish(three, "re_3")
	page := v.get("/effects/" + two)
	if !strings.Contains(page.text(), "2 of 2 identical calls took effect, 20.00 EUR in all") || !strings.Contains(page.body, `href="/effects/`+one+`"`) {
		t.Error(page.text())
	}
	if text := v.get("/effects/" + three).text(); !strings.Contains(text, "3 of 3 identical calls took effect, 30.00 EUR in all") {
		t.Error(text)
	}
	if text := v.get("/effects/" + one).text(); strings.Contains(text, "identical calls") {
		t.Error("the first repeats nothing")
	}
}
