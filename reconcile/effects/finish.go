package effects

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"quittance/ledger"
	store "quittance/ledger/effects"
	"quittance/reconcile/canon"
)

func (w *work) finish(ctx context.Context, p *prepared, c call, owned map[store.Reference]string) error {
	if !p.open() {
		return nil
	}
	f := p.Finish
	x := w.finished(p, c)
	switch {
	case x == nil && f.EffectID != "":
		p.refuse(&Refusal{Code: CodeNotFound, Detail: "There is no such effect."})
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
	another, err := w.anotherObject(ctx, x, ev, f)
	if err != nil {
		return err
	}
	ev.TwoClaim = ev.TwoClaim || another
	if known, err := w.heardBefore(ctx, x, ev, f); known || err != nil {
		p.refuse(staleFence(x))
		return err
	}
	equal := ev.equal(p, x)
	m, err := w.step(x, ev.Event, "finish", map[string]any{"fence": f.Fence, "outcome": cut(f.Outcome, 256)}, func(m Move) {
		switch m.To {
		case Taken:
			if m.Kept {
				return
			}
			x.Reference = f.Reference
			w.setOutcome(x, p)
		case Failed:
			w.setOutcome(x, p)
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
	if !equal && (m.Kept || m.Contradiction || !changed || x.State == Interrupted) {
		id := w.observe(store.Evidence{
			Effect: x.ID, Source: evidenceSource(ev), Fence: f.Fence, Verdict: ev.verdict(), Reference: f.Reference,
			Seen: storable(f.Outcome), Data: p.failure.text,
		})
		if m.Contradiction && another {
			w.contradicted(x, "earlier_attempt_taken", id)
		} else if m.Contradiction {
			w.contradicted(x, contradictionKind(m), id)
		}
	}
	switch {
	case changed || equal:
		p.answer.Finish = &FinishAnswer{EffectID: x.ID, State: string(x.State), Version: x.Version, Stored: p.result.stored}
	default:
		p.refuse(staleFence(x))
	}
	return nil
}

func staleFence(x *effect) *Refusal {
	return &Refusal{Code: CodeStaleFence, EffectID: x.ID, RunID: x.run.RunID, State: string(x.State), Version: x.Version,
		Detail: "The effect is not open to this finish any more. It is kept as evidence."}
}

// heardBefore tells whether the finish only repeats one that is on record as a
// contradiction, or that reopened what a person had decided. A spool sends again what
// it got no answer to: that is no second incident, nothing to acknowledge once more,
// and no reason to close what the first one left for a person.
func (w *work) heardBefore(ctx context.Context, x *effect, ev finishEvent, f *Finish) (bool, error) {
	reopened := x.State == Interrupted && x.Why == WhyContradicted
	if !reopened && !Next(x.facts(), ev.Event).Contradiction {
		return false, nil
	}
	same := store.Evidence{Effect: x.ID, Fence: f.Fence, Verdict: ev.verdict(), Reference: f.Reference}
	if reopened {
		return store.Observed(ctx, w.tx, same)
	}
	return store.Contradicted(ctx, w.tx, same)
}

// anotherObject tells whether the last attempt took effect under another reference than
// an earlier one. While an earlier one was the only one heard of, both could be one
// object of the same vendor key; with the second reference they cannot.
func (w *work) anotherObject(ctx context.Context, x *effect, ev finishEvent, f *Finish) (bool, error) {
	if !ev.last || ev.Word != WordTaken || f.Reference == "" || x.Attempts < 2 {
		return false, nil
	}
	for _, v := range w.evidence { // of this batch
		if v.Effect == x.ID && v.Verdict == "taken" && v.Fence != 0 && v.Fence < x.Fence && v.Reference != "" && v.Reference != f.Reference {
			return true, nil
		}
	}
	return store.TakenBefore(ctx, w.tx, x.ID, x.Fence, f.Reference)
}

// again keeps a text once more when its tool has pointers of its own to redact.
func (e *Engine) again(k kept, tool, at string, raw []byte) (kept, *Refusal) {
	if len(raw) == 0 || len(e.Policy().Tool(tool).Redact) == len(e.Policy().Tool("").Redact) {
		return k, nil
	}
	return e.keep(at, tool, raw)
}

// finishEvent is a finish as the state table sees it.
type finishEvent struct {
	Event
	last, stray bool
}

func (w *work) finishEvent(p *prepared, x *effect, owned map[store.Reference]string) finishEvent {
	f := p.Finish
	ev := finishEvent{Event: Event{Kind: KFinish, Word: wordOf(f.Outcome)}}
	fence := f.Fence
	if fence == 0 && x.Attempts == 1 && !x.Gap {
		fence = x.Fence
	}
	ev.last = x.Attempts > 0 && !x.Gap && fence == x.Fence
	ev.stray = !ev.last && (x.Attempts == 0 || x.Gap || fence == 0 || fence > x.Fence)
	ev.Stray, ev.Earlier = ev.stray, !ev.last && !ev.stray
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
	if !ev.last || x.UsedAt.IsZero() && x.State != Taken {
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
	if ev.last {
		return "agent"
	}
	return "late_agent"
}

func contradictionKind(m Move) string {
	switch m.Row {
	case "L1", "L2", "L4", "L5":
		return "earlier_attempt_taken"
	case "F9", "K4":
		return "other_reference"
	case "K7":
		return "several_hits"
	case "F11", "K6":
		return "used_but_not_taken"
	case "F12", "K9":
		return "failed_but_taken"
	case "F14":
		return "stopped_but_taken"
	}
	return "business_key_held_by_another"
}

func (w *work) setOutcome(x *effect, p *prepared) {
	x.texts = store.Texts{Set: true, Result: p.result.text, Error: p.failure.text}
	x.ResultSize = p.result.stored.Size
	x.ResultDigest = nil
	if p.result.stored.Digest != "" {
		x.ResultDigest = digestOf(p.result.stored.Digest)
	}
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
	var accounts []int64
	var tools, refs []string
	for i, p := range ops {
		if f := p.Finish; f != nil && f.Reference != "" && p.open() {
			x := w.finished(p, calls[i])
			if x == nil || !careful && x.SameAs == "" {
				continue
			}
			tool := x.Tool
			accounts, tools, refs = append(accounts, f.Account), append(tools, tool), append(refs, f.Reference)
		}
	}
	if len(refs) == 0 {
		return map[store.Reference]string{}, nil
	}
	return store.OwnedReferences(ctx, w.tx, accounts, tools, refs)
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
