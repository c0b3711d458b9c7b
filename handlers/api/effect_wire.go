package api

import (
	"quittance/client"
	"quittance/ledger/money"
	"quittance/reconcile/effects"
)

func amountWire(m *money.Amount) *client.Amount {
	if m == nil {
		return nil
	}
	return &client.Amount{Value: m.String(), Currency: m.Asset().Code}
}

// effectWire gives lists as lists also when they are empty.
func effectWire(v effects.EffectView) client.EffectView {
	out := client.EffectView{
		EffectID: v.EffectID, RunID: v.RunID, Account: v.Account, Agent: v.Agent, Tool: v.Tool, Key: v.Key,
		Occurrence: v.Occurrence, State: v.State, Why: v.Why, Version: v.Version, Blind: v.Blind,
		Summary: v.Summary, BusinessKey: v.BusinessKey, Amount: amountWire(v.Amount), AmountProblem: v.AmountProblem,
		SameAs: v.SameAs, RepeatOf: v.RepeatOf,
		OpenedAt: moment(v.OpenedAt), WaitingSince: momentOrNil(v.WaitingSince), DecidedBy: v.DecidedBy,
		ReleaseAt: momentOrNil(v.ReleaseAt), Released: v.Released, UsedAt: momentOrNil(v.UsedAt),
		Moment: momentOrNil(v.Moment), Early: v.Early,
		Arguments: v.Arguments, CallID: v.CallID, ClientTime: v.ClientTime, Context: v.Context,
		Stored:         client.Stored{Result: v.Result, Error: v.Error, Reference: v.Reference},
		Attempts:       make([]client.AttemptView, len(v.Attempts)),
		Evidence:       make([]client.EvidenceView, len(v.Evidence)),
		Decisions:      make([]client.DecisionView, len(v.Decisions)),
		Contradictions: make([]client.ContradictionView, len(v.Contradictions)),
		LogPosition:    v.LogPosition,
	}
	if v.Stored != nil {
		out.ResultOmitted, out.ResultSize, out.ResultDigest = v.Stored.Cut, v.Stored.Size, v.Stored.Digest
	}
	if v.Proposal != nil {
		proposal := decisionView(*v.Proposal)
		out.Proposal = &proposal
	}
	for i, t := range v.Attempts {
		out.Attempts[i] = client.AttemptView{Attempt: t.Number, Fence: t.Fence, Worker: t.Worker, BegunAt: moment(t.BegunAt), Deadline: momentOrNil(t.Deadline)}
	}
	for i, e := range v.Evidence {
		out.Evidence[i] = client.EvidenceView{At: moment(e.At), Source: e.Source, Person: e.Person, Fence: e.Fence, Verdict: e.Verdict, Reference: e.Reference, Seen: e.Seen, NextLook: momentOrNil(e.NextLook)}
	}
	for i, d := range v.Decisions {
		out.Decisions[i] = decisionView(d)
	}
	for i, k := range v.Contradictions {
		out.Contradictions[i] = client.ContradictionView{
			At: moment(k.At), Kind: k.Kind, Recovery: k.Recovery,
			AcknowledgedAt: momentOrNil(k.AcknowledgedAt), AcknowledgedBy: k.AcknowledgedBy, Note: k.Note,
		}
	}
	for _, r := range v.Refused {
		out.Refused = append(out.Refused, client.RefusedView{At: moment(r.At), Call: r.Call, Reason: r.Reason, Worker: r.Worker, AttemptID: r.AttemptID})
	}
	for _, o := range v.Overlaps {
		out.Overlaps = append(out.Overlaps, client.OverlapView{
			EffectID: o.EffectID, RunID: o.RunID, State: o.State, OpenedAt: moment(o.OpenedAt),
			Amount: amountWire(o.Amount), Arguments: o.Arguments, Owner: o.Owner,
		})
	}
	return out
}

func decisionView(d effects.DecisionView) client.DecisionView {
	return client.DecisionView{
		DecisionID: d.ID, At: moment(d.At), Act: d.Act, Verdict: d.Verdict, By: d.By,
		Person: d.Person, Note: d.Note, Reference: d.Reference,
	}
}
