package lookup_test

import (
	"testing"
	"time"

	"quittance/reconcile/canon"
	"quittance/reconcile/lookup"
)

// A source may have stored the spelling that was sent, and compare bytes: that it shows
// nothing for the other spelling is no proof.
func TestBC052_AbsenceProvesNothingOfATextInTwoSpellings(t *testing.T) {
	t.Parallel()
	for arguments, proven := range map[string]bool{
		`{"vendor":"Caf\u00e9 Z\u00fcrich"}`: true, `{"vendor":"Cafe\u0301 Zu\u0308rich"}`: false, `{"lines":[{"to":["Cafe\u0301"]}]}`: false,
		`{"f":"ﬁle","n":"１"}`: true, `{"vendor":"ACME","amount":1}`: true,
	} {
		v, err := canon.ParseObject([]byte(arguments))
		if err != nil {
			t.Fatal(err)
		}
		q := question()
		q.Arguments = v
		a := lookup.Judge(q, terms(), nothing(), []lookup.Read{good(q.AskedAt.Add(-time.Minute))})
		if (a.Verdict == lookup.NotTaken) != proven {
			t.Errorf("%s: %s (%s)", arguments, a.Verdict, a.Why)
		}
		if !proven && !a.Earliest.IsZero() {
			t.Errorf("%s: said to be provable at %s", arguments, a.Earliest)
		}
	}
}
