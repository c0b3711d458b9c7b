package lookup_test

import (
	"testing"

	"quittance/reconcile/lookup"
)

// A record that a person denied is a candidate again once the call was sent again because
// of that, and has another record as well.
func TestADeniedRecordIsACandidateAgain(t *testing.T) {
	t.Parallel()
	denied := lookup.Hit{Reference: "refused", Match: true, Final: true}
	other := denied
	other.Reference = "refused too"
	with := func(change func(h *lookup.Hit)) lookup.Hit { h := denied; change(&h); return h }
	for name, c := range map[string]struct {
		hits     []lookup.Hit
		sent     bool   // again, after it was denied
		recorded string // what the effect was closed with
		want     lookup.Reason
		verdict  lookup.Verdict
	}{
		"beside the second one":               {[]lookup.Hit{denied, hit()}, true, "", lookup.Multiple, ""},
		"nothing was sent again":              {[]lookup.Hit{denied, hit()}, false, "", lookup.Matched, lookup.Taken},
		"alone":                               {[]lookup.Hit{denied}, true, "", lookup.NotYet, ""},
		"alone, and the second is on record":  {[]lookup.Hit{denied}, true, "tr_1", lookup.Matched, lookup.Taken},
		"both are denied":                     {[]lookup.Hit{denied, other}, true, "", lookup.Multiple, ""},
		"it is what the effect was closed by": {[]lookup.Hit{denied}, true, "refused", lookup.Matched, lookup.Taken},
		"the same, decided by a person":       {[]lookup.Hit{denied}, false, "refused", lookup.Matched, lookup.Taken},
		"it does not fit":                     {[]lookup.Hit{with(func(h *lookup.Hit) { h.Match = false }), hit()}, true, "", lookup.Matched, lookup.Taken},
		"it does not fit, and has our key":    {[]lookup.Hit{with(func(h *lookup.Hit) { h.Match, h.Ours = false, true }), hit()}, true, "", lookup.Multiple, ""},
		"it is not final":                     {[]lookup.Hit{with(func(h *lookup.Hit) { h.Final = false }), hit()}, true, "", lookup.Multiple, ""},
		"it was cancelled for good":           {[]lookup.Hit{with(func(h *lookup.Hit) { h.Never = true }), hit()}, true, "", lookup.Matched, lookup.Taken},
		"it is only possible":                 {[]lookup.Hit{with(func(h *lookup.Hit) { h.Possible = true }), hit()}, true, "", lookup.Matched, lookup.Taken},
		"the other is another effect's":       {[]lookup.Hit{denied, {Reference: "others", Match: true, Final: true}}, true, "", lookup.NotYet, ""},
		"the other is cancelled for good":     {[]lookup.Hit{denied, {Reference: "tr_1", Match: true, Never: true}}, true, "", lookup.NotYet, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q, s := question(), nothing()
			q.Owned["refused too"], q.Reference = "", c.recorded
			q.Resent = map[string]bool{"refused": c.sent, "refused too": c.sent}
			s.Hits = c.hits
			a := lookup.Judge(q, terms(), s, nil)
			if a.Reason != c.want || a.Verdict != c.verdict {
				t.Errorf("%q (%s), want %q (%s)", a.Verdict, a.Reason, c.verdict, c.want)
			}
			if c.want == lookup.Multiple && (a.Free != 2 || len(a.Stopping()) != 2) {
				t.Errorf("%d are free, %d stop a decision", a.Free, len(a.Stopping()))
			}
		})
	}
}
