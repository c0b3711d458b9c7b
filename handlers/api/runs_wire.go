package api

import (
	"net/url"
	"time"

	"quittance/client"
	"quittance/reconcile/effects"
)

// moment is a time as the API gives it: UTC, to the microsecond.
func moment(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// momentOrNil leaves out a time that is not set.
func momentOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	m := moment(t)
	return &m
}

// effectURL is the page where a person decides an effect.
func (a *API) effectURL(id string) string { return a.public + "/effects/" + url.PathEscape(id) }

func leaseWire(l effects.Lease) client.RunLease {
	out := client.RunLease{
		RunID: l.RunID, Agent: l.Agent, State: l.State, Volatile: l.Volatile, LogPosition: l.LogPosition,
		Lease: client.Lease{Token: l.Token, Epoch: l.Epoch, ExpiresAt: moment(l.ExpiresAt)},
	}
	if l.Checkpoint != nil {
		out.Checkpoint = &client.CheckpointMark{Turn: l.Checkpoint.Turn, SavedAt: moment(l.Checkpoint.SavedAt), Damaged: l.Checkpoint.Damaged}
	}
	return out
}

func leaseAnswer(v effects.RunView) client.LeaseAnswer {
	return client.LeaseAnswer{State: v.State, ExpiresAt: momentOrNil(v.ExpiresAt), LogPosition: v.LogPosition}
}

func (a *API) runWire(v effects.RunView) client.RunView {
	out := client.RunView{
		RunID: v.RunID, Agent: v.Agent, State: v.State, OpenedAt: moment(v.OpenedAt), ClosedAt: momentOrNil(v.ClosedAt),
		Refused: v.Refused, WaitingFor: a.waitingWire(v.WaitingFor), LogPosition: v.LogPosition,
	}
	if !v.ExpiresAt.IsZero() {
		out.HeldBy = &client.HeldBy{Worker: v.HeldBy, Epoch: v.Epoch, ExpiresAt: momentOrNil(v.ExpiresAt)}
	}
	for _, e := range v.Open {
		out.OpenEffects = append(out.OpenEffects, client.OpenEffect{
			EffectID: e.EffectID, Tool: e.Tool, Key: e.Key, State: e.State, Since: moment(e.Since), URL: a.effectURL(e.EffectID),
		})
	}
	return out
}

func (a *API) waitingWire(list []effects.Waiting) []client.WaitingFor {
	var out []client.WaitingFor
	for _, w := range list {
		out = append(out, client.WaitingFor{
			EffectID: w.EffectID, Reason: w.Reason, Tool: w.Tool,
			ReleaseAt: momentOrNil(w.ReleaseAt), URL: a.effectURL(w.EffectID),
		})
	}
	return out
}
