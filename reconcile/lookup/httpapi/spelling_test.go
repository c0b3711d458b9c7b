package httpapi_test

import (
	"testing"

	"quittance/reconcile/canon"
	"quittance/reconcile/lookup"
)

// Whichever way a name is spelt in the call, in the answer and in the policy, it is one name;
// letters that only look alike are others.
func TestBC052_TwoSpellingsAreOneNameInALookUp(t *testing.T) {
	t.Parallel()
	const composed, decomposed = "Caf\u00e9 Z\u00fcrich", "Cafe\u0301 Zu\u0308rich"
	for _, c := range []struct {
		sent, stored, policy string
		reason               lookup.Reason
	}{
		{decomposed, composed, composed, lookup.Matched},
		{composed, decomposed, composed, lookup.Matched},
		{decomposed, decomposed, composed, lookup.Matched},
		{composed, composed, decomposed, lookup.Matched},
		{"\ufb01le", "file", "\ufb01le", lookup.NotYet},
		{"\uff11", "1", "\uff11", lookup.NotYet},
	} {
		_, base := serve(t, says(`{"data":[{"ref":"INV-9","vendor":"`+c.stored+`","id":"t","amount":420000,"currency":"USD"}]}`))
		w := open(t)
		w.declare(`
tools:
  pay:
    business_key: "{invoice}"
    amount: {value: amount, currency: currency, unit: minor}
    lookup:
      allow_private: true
      http: {url: '` + base + `/?q={business_key}'}
      found: body.data.filter(p, p.vendor == effect.arguments.vendor && p.vendor == "` + c.policy + `" && p.ref == effect.reference && effect.reference == effect.run)
      match: same_amount(hit.amount, "minor") && hit.currency == effect.currency
      final: "true"
      reference: hit.id
      result: '{"id": hit.id}'
`)
		q := w.question()
		q.Reference, q.Run = "INV-9", "INV-9"
		var err error
		if q.Arguments, err = canon.ParseObject([]byte(`{"invoice":"INV-9","vendor":"` + c.sent + `"}`)); err != nil {
			t.Fatal(err)
		}
		if a, seen := w.askAbout(q); a.Reason != c.reason {
			t.Errorf("sent %q, stored %q, policy %q: %s %s %s", c.sent, c.stored, c.policy, a.Reason, a.Why, seen.Detail)
		}
	}
}
