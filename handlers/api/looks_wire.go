package api

import (
	"quittance/client"
	"quittance/reconcile/effects"
)

// looksWire adds what asking the downstream has shown. The requests and the excerpts of
// answers stay on the page: programs have no use for them.
func looksWire(v effects.LooksView, out *client.EffectView) {
	out.LookingUp, out.NextLookUpAt, out.LookUpsEnded, out.VendorKeyEnds = v.Asking, momentOrNil(v.Next), momentOrNil(v.EndedAt), momentOrNil(v.KeyEnds)
	for _, l := range v.Looks {
		w := client.LookUpView{
			AskedAt: moment(l.AskedAt), Verdict: l.Verdict, Reason: string(l.Reason), Why: l.Why, Reference: l.Reference, Earliest: momentOrNil(l.Earliest),
			Status: l.Status, LatencyMS: l.Latency.Milliseconds(),
		}
		for _, r := range l.Records {
			w.Records = append(w.Records, client.LookUpRecord{
				Reference: r.Reference, Amount: r.Amount, Currency: r.Currency, State: r.State, Match: r.Match, Final: r.Final, Ours: r.Ours,
				Possible: r.Possible, Never: r.Never, Reversed: r.Reversed, Foreign: r.Foreign, Owner: r.Owner,
			})
		}
		for _, c := range l.Conditions {
			w.Needs = append(w.Needs, client.LookUpCondition{Name: string(c.Name), Met: c.Met, Never: c.Never, Earliest: momentOrNil(c.Earliest), Why: c.Why})
		}
		out.LookUps = append(out.LookUps, w)
	}
}
