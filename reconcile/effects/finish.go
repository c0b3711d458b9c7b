package effects

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"quittance/ledger"
	store "quittance/ledger/effects"
	"quittance/reconcile/canon"
	"quittance/reconcile/guards"
)

func (w *work) finish(ctx context.Context, p *prepared, c call, owned map[store.Reference]string) error {
	if !p.open() {
		return nil
	}
	f := p.Finish
	x := w.finished(p, c)
	switch {
	case x == nil && f.EffectID != "":
		p.refuse(noEffect())
		return nil
	case x == nil:
		return w.keepFinish(ctx, p, c, w.names[runName{f.Account, f.RunID}])
	}

	if x.Tool != f.Tool {
		// Only now is it known whose policy says what to redact.
		var r *Refusal
		if p.result, r = w.e.again(p.result, x.Tool, "/result", f.Result); r == nil {
			p.failure, r = w.e.again(p.failure, x.Tool, "/error", f.Error)
		}
		if r != nil {
			p.refuse(r)
			return nil
		}
	}
	if x.dirty {
		// The schema judges each move; what an earlier operation of the batch did to this
		// effect must be a move of its own.
		if err := w.write(ctx); err != nil {
			return err
		}
	}
	paused := x.run.paused
	if x.State == InFlight && !x.Deadline.After(w.now) {
		// Time first: this finish is late.
		if _, err := w.step(x, Event{Kind: KTime}, "interrupted", map[string]string{"by": "finish"}, nil); err != nil {
			return err
		}
	}
	ev := w.finishEvent(p, x, owned)
	if ev.last() && ev.Word == WordTaken {
		var err error
		if ev.TwoObjects, err = w.twoObjects(ctx, x, f.Reference); err != nil {
			return err
		}
	}
	if known, err := w.heardBefore(ctx, x, ev, f); known || err != nil {
		p.refuse(staleFence(x))
		return err
	}
	equal := ev.equal(p, x)
	m, err := w.step(x, ev.Event, "finish", finishCause(f), func(m Move) {
		switch m.To {
		case Taken:
			if m.Kept {
				return
			}
			x.Reference = f.Reference
			x.setOutcome(p.result, p.failure)
		case Failed:
			x.setOutcome(p.result, p.failure)
		}
	})
	if err != nil {
		return err
	}
	if !needsPerson(x) {
		x.run.paused = paused
	}
	if x.State == Taken && x.Reference != "" {
		owned[store.Reference{Account: x.Account, Tool: x.Tool, Ref: x.Reference}] = x.ID
	}
	changed := !m.Kept && m.Row != "Z"
	if !equal && (m.Kept || m.Contradiction != "" || !changed || x.State == Interrupted) {
		id := w.observe(store.Evidence{
			Effect: x.ID, Source: evidenceSource(ev), Fence: f.Fence, Verdict: ev.verdict(), Reference: f.Reference,
			Seen: storable(f.Outcome), Data: p.failure.text,
		})
		w.contradicted(x, m, id)
	}
	switch {
	case changed || equal:
		p.answer.Finish = &FinishAnswer{EffectID: x.ID, State: string(x.State), Version: x.Version, Stored: p.result.stored}
	default:
		p.refuse(staleFence(x))
	}
	return nil
}

// finishCause is what the event of a finish remembers for people.
func finishCause(f *Finish) map[string]any {
	return map[string]any{"fence": f.Fence, "outcome": cut(f.Outcome, 256)}
}

func staleFence(x *effect) *Refusal {
	return x.refusal(CodeStaleFence, "The effect is not open to this finish any more. It is kept as evidence.")
}

// heardBefore tells whether the finish only repeats one that is on record as a
// contradiction, or that reopened what a person had decided. A spool sends again what
// it got no answer to: that is no second incident, nothing to acknowledge once more,
// and no reason to close what the first one left for a person.
func (w *work) heardBefore(ctx context.Context, x *effect, ev finishEvent, f *Finish) (bool, error) {
	reopened := x.State == Interrupted && x.Why == WhyContradicted
	if !reopened && Next(x.facts(), ev.Event).Contradiction == "" {
		return false, nil
	}
	same := store.Evidence{Effect: x.ID, Fence: f.Fence, Verdict: ev.verdict(), Reference: f.Reference}
	if reopened {
		return store.Observed(ctx, w.tx, same)
	}
	return store.Contradicted(ctx, w.tx, same)
}

// twoObjects tells whether an earlier attempt took effect under another reference than
// this one, of the last attempt. While the earlier one was the only one heard of, both
// could be one object of the same vendor key; with a second reference they cannot.
func (w *work) twoObjects(ctx context.Context, x *effect, reference string) (bool, error) {
	if reference == "" || x.Attempts < 2 {
		return false, nil
	}
	for _, v := range w.evidence { // of this batch
		if v.Effect == x.ID && v.Verdict == "taken" && v.Fence != 0 && v.Fence < x.Fence && v.Reference != "" && v.Reference != reference {
			return true, nil
		}
	}
	return store.TakenBefore(ctx, w.tx, x.ID, x.Fence, reference)
}

// again keeps a text once more when its tool has pointers of its own to redact.
func (e *Engine) again(k kept, tool, at string, raw []byte) (kept, *Refusal) {
	if len(raw) == 0 || len(e.Policy().Tool(tool).Redact) == len(e.Policy().Tool("").Redact) {
		return k, nil
	}
	return e.keep(at, tool, raw)
}

// finishEvent is a finish as the state table sees it.
type finishEvent struct{ Event }

// last: by the last attempt that is on record.
func (ev finishEvent) last() bool { return !ev.Earlier && !ev.Stray }

func (w *work) finishEvent(p *prepared, x *effect, owned map[store.Reference]string) finishEvent {
	f := p.Finish
	ev := finishEvent{Event{Kind: KFinish, Word: wordOf(f.Outcome)}}
	fence := f.Fence
	if fence == 0 && x.Attempts == 1 && !x.Gap {
		fence = x.Fence
	}
	if guards.Off(guards.Fence) {
		fence = x.Fence
	}
	ev.Stray = x.Attempts == 0 || x.Gap || fence == 0 || fence > x.Fence
	ev.Earlier = !ev.Stray && fence < x.Fence
	t := w.e.Policy().Tool(x.Tool)
	if ev.Word == WordUnknown && p.failure.value != nil {
		ev.Refusal = t.Refused(p.failure.value)
	}
	if f.Reference != "" {
		holder := owned[store.Reference{Account: x.Account, Tool: x.Tool, Ref: f.Reference}]
		ev.RefOwned = holder != "" && holder != x.ID
		recorded := x.Reference
		if x.SameAs != "" {
			ev.OtherRef = holder != x.SameAs
		} else {
			ev.OtherRef = recorded != "" && recorded != f.Reference
		}
	}
	// Two attempts under one vendor key are one object where the vendor keeps the key.
	ev.OneOf = ev.Earlier && t.VendorKey != nil && (x.Reference == "" || f.Reference == "" || x.Reference == f.Reference)
	ev.TwoClaim = w.twoClaim(x)
	ev.ClaimLost = w.claimLost(x)
	return ev
}

func wordOf(outcome string) Word {
	switch outcome {
	case "taken", "completed":
		return WordTaken
	case "failed":
		return WordFailed
	}
	return WordUnknown
}

func (ev finishEvent) verdict() string {
	switch {
	case ev.Word == WordTaken:
		return "taken"
	case refused(Facts{}, ev.Event):
		return "failed"
	}
	return "inconclusive"
}

// equal tells whether the finish only repeats, or agrees with, what is on record: the
// same reference, or without references the same result. A result that a look-up or
// a person gave is never compared.
func (ev finishEvent) equal(p *prepared, x *effect) bool {
	if !ev.last() || x.UsedAt.IsZero() && x.State != Taken {
		return false
	}
	switch x.State {
	case Taken:
		if ev.Word != WordTaken || ev.OtherRef {
			return false
		}
		if x.DecidedBy == ByLookup || x.DecidedBy == ByPerson || p.Finish.Reference != "" && p.Finish.Reference == x.Reference {
			return true
		}
		return hex.EncodeToString(x.ResultDigest) == p.result.stored.Digest
	case Failed:
		return refused(Facts{}, ev.Event)
	}
	return false
}

func evidenceSource(ev finishEvent) string {
	if ev.last() {
		return "agent"
	}
	return "late_agent"
}

// setOutcome gives an effect what its agent will be told.
func (x *effect) setOutcome(result, failure kept) {
	x.texts = store.Texts{Set: true, Result: result.text, Error: failure.text}
	x.ResultSize, x.ResultDigest = result.stored.Size, digestOf(result.stored.Digest)
}

// keepFinish keeps a finish without an intent: a broken client, shown as one.
func (w *work) keepFinish(ctx context.Context, p *prepared, c call, r *run) error {
	f := p.Finish
	body, err := json.Marshal(struct {
		Fence     int64           `json:"fence,omitempty"`
		Outcome   string          `json:"outcome"`
		Reference string          `json:"reference,omitempty"`
		Arguments json.RawMessage `json:"arguments,omitempty"`
		Result    json.RawMessage `json:"result,omitempty"`
		Error     json.RawMessage `json:"error,omitempty"`
	}{f.Fence, f.Outcome, f.Reference, raw(p.text), raw(p.result.text), raw(p.failure.text)})
	if err != nil {
		return fmt.Errorf("couldn't encode a finish: %w", err)
	}
	keys := []canon.Key{c.key}
	if c.minted != (canon.Key{}) {
		keys = append(keys, c.minted)
	}
	for _, key := range keys {
		err = store.KeepFinish(ctx, w.tx, store.Kept{
			Run: r.ID, Key: key[:], At: ledger.At(w.now), Tool: f.Tool, Outcome: storable(f.Outcome), Reference: f.Reference, Body: string(body),
		})
		if err != nil {
			return err
		}
	}
	r.Kept++
	w.hint(r)
	p.answer.Finish = &FinishAnswer{State: "kept", Stored: p.result.stored}
	return nil
}

func raw(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}

// ownedReferences looks up which effects the references of the batch already prove.
// The unique index is the guard; this look is taken only after it has refused, and
// for effects that are the same as another, whose reference they have to agree with.
func (w *work) ownedReferences(ctx context.Context, ops []*prepared, calls []call, careful bool) (map[store.Reference]string, error) {
	var list []store.Reference
	for i, p := range ops {
		if f := p.Finish; f != nil && f.Reference != "" && p.open() {
			x := w.finished(p, calls[i])
			if x == nil || !careful && x.SameAs == "" {
				continue
			}
			list = append(list, store.Reference{Account: f.Account, Tool: x.Tool, Ref: f.Reference})
		}
	}
	return store.OwnedReferences(ctx, w.tx, list)
}

// finished is the effect that a finish names; nil when there is none.
func (w *work) finished(p *prepared, c call) *effect {
	f := p.Finish
	if f.EffectID != "" {
		if x := w.effects[f.EffectID]; x != nil && x.Account == f.Account {
			return x
		}
		return nil
	}
	run := w.names[runName{f.Account, f.RunID}].ID
	if x := w.keys[runKey{run, string(c.key[:])}]; x != nil {
		return x
	}
	return w.keys[runKey{run, string(c.minted[:])}]
}
