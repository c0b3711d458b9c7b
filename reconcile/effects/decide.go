package effects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"quittance/ledger"
	store "quittance/ledger/effects"
)

// DecideResult is what became of one verdict: exactly one field is set.
type DecideResult struct {
	Answer  *DecideAnswer
	Refusal *Refusal
}

const (
	noteLimit     = 20_000 // bytes
	decisionLimit = 500    // verdicts in one call
)

// Decide records verdicts, one result each in order. A list with a missing or
// repeated effect is refused whole and changes nothing; otherwise each verdict
// stands alone.
func (e *Engine) Decide(ctx context.Context, p Person, list []Decide) ([]DecideResult, error) {
	if len(list) == 0 || len(list) > decisionLimit {
		return nil, invalid("", "A list holds 1 to %d decisions.", decisionLimit)
	}
	seen := map[string]int{}
	for i := range list {
		id, err := uuid.Parse(list[i].EffectID)
		if err != nil {
			return nil, invalid(fmt.Sprintf("/%d/effect_id", i), "Each decision names its effect.")
		}
		list[i].EffectID = id.String()
		if j, twice := seen[list[i].EffectID]; twice {
			return nil, invalid(fmt.Sprintf("/%d/effect_id", i), "The effect is decided at %d already.", j)
		}
		seen[list[i].EffectID] = i
	}
	out := make([]DecideResult, len(list))
	for i, d := range list {
		a, err := e.decide(ctx, p, d)
		var r *Refusal
		switch {
		case errors.As(err, &r):
			out[i].Refusal = r
		case err != nil:
			return out, err
		default:
			out[i].Answer = &a
		}
	}
	return out, nil
}

// verdict is one decision on its way.
type verdict struct {
	*work
	Decide
	by     Person
	x      *effect
	past   []store.Decision // acts on the effect so far
	result kept
	answer DecideAnswer
}

func (e *Engine) decide(ctx context.Context, p Person, d Decide) (DecideAnswer, error) {
	result, refusal := e.checkDecide(&d)
	if refusal != nil {
		return DecideAnswer{}, refusal
	}
	var v *verdict
	err := e.onEffect(ctx, d.EffectID, func(ctx context.Context, w *work, x *effect) (*Refusal, error) {
		past, err := store.Decisions(ctx, w.tx, []string{x.ID})
		if err != nil {
			return nil, err
		}
		v = &verdict{work: w, Decide: d, by: p, x: x, past: past[x.ID], result: result}
		return v.judge(ctx)
	})
	if ledger.Constraint(err) == "effects_reference" {
		return DecideAnswer{}, &Refusal{Code: CodeConflict, Reason: "reference", EffectID: d.EffectID, Pointer: "/reference",
			Detail: "This reference already proves another effect of the same tool: one record never proves two."}
	}
	if err != nil {
		return DecideAnswer{}, err
	}
	return v.answer, nil
}

func (e *Engine) checkDecide(d *Decide) (kept, *Refusal) {
	if len(d.Note) > noteLimit || len(d.Evidence) > noteLimit {
		return kept{}, invalid("/note", "It is longer than %d bytes.", noteLimit)
	}
	if d.DecisionID != "" {
		if r := limited("/decision_id", d.DecisionID, 256); r != nil {
			return kept{}, r
		}
	}
	if d.Reference != "" {
		if r := limited("/reference", d.Reference, 1024); r != nil {
			return kept{}, r
		}
	}
	switch d.Verdict {
	case VerdictTaken, VerdictNotTaken, VerdictStop, VerdictAllow, VerdictSameAs, VerdictAcknowledge, VerdictSendBack:
	default:
		return kept{}, invalid("/verdict", "It is taken, not_taken, stop, allow, same_as, acknowledge or send_back.")
	}
	if d.Verdict != VerdictTaken && (d.Reference != "" || len(d.Result) > 0) {
		return kept{}, invalid("/verdict", "Only taken carries a reference or a result.")
	}
	if (d.Verdict == VerdictSameAs) != (d.SameAs != "") {
		return kept{}, invalid("/same_as", "It names the other effect, and only for same_as.")
	}
	if d.SameAs != "" {
		id, err := uuid.Parse(d.SameAs)
		if err != nil || id.String() == d.EffectID {
			return kept{}, invalid("/same_as", "It names another effect.")
		}
		d.SameAs = id.String()
	}
	d.Note, d.Evidence = e.words(d.Note), e.words(d.Evidence)
	if len(d.Result) > ResultLimit {
		return kept{}, &Refusal{Code: CodeTooLarge, Pointer: "/result", Detail: fmt.Sprintf("A result a person gives has at most %d bytes.", ResultLimit)}
	}
	return e.keep("/result", "", d.Result)
}

// onEffect runs f on one effect whose run is locked and caught up with time.
func (e *Engine) onEffect(ctx context.Context, id string, f func(ctx context.Context, w *work, x *effect) (*Refusal, error)) error {
	var w *work
	var refusal *Refusal
	err := e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) (err error) {
		refusal = nil
		w = e.work(ctx, tx)
		if err = w.lock(ctx, nil, []string{id}, nil); err != nil {
			return err
		}
		if w.sys.Behind() {
			refusal = logBehind()
			return nil
		}
		if err = w.load(ctx, store.Wanted{IDs: []string{id}}); err != nil {
			return err
		}
		x := w.effects[id]
		if x == nil {
			refusal = &Refusal{Code: CodeNotFound, EffectID: id, Detail: "There is no such effect."}
			return nil
		}
		if err = w.catchUp(ctx); err != nil {
			return err
		}
		if x.State == InFlight && !x.Deadline.After(w.now) {
			if _, err = w.step(x, Event{Kind: KTime}, "interrupted", map[string]string{"by": "deadline"}, nil); err != nil {
				return err
			}
		}
		if err = w.lockClaims(ctx, digests(x.claims())...); err != nil {
			return err
		}
		if refusal, err = f(ctx, w, x); err != nil {
			return err
		}
		return w.flush(ctx)
	})
	if err != nil {
		return err
	}
	w.tell()
	if refusal != nil {
		return refusal
	}
	return nil
}

// judge decides in this order: an answer already given to this decision_id; what is
// said of a contradiction or a waiting verdict; an effect that is decided already;
// the version; the second person; the state table.
func (v *verdict) judge(ctx context.Context) (*Refusal, error) {
	if v.DecisionID != "" {
		for _, d := range v.past {
			if d.DecisionID == v.DecisionID {
				return v.again(d)
			}
		}
	}
	x := v.x
	switch v.Verdict {
	case VerdictAcknowledge:
		return v.acknowledge(ctx)
	case VerdictSendBack:
		return v.sendBack()
	}
	if r, done, err := v.already(); done {
		return r, err
	}
	if v.Version != x.Version {
		return &Refusal{Code: CodeStale, EffectID: x.ID, State: string(x.State), Version: x.Version,
			Detail: "The effect has changed since this version was read. Look again before you decide."}, nil
	}
	if strings.TrimSpace(v.Note) == "" {
		return &Refusal{Code: CodeNoteMissing, EffectID: x.ID, Pointer: "/note", Detail: "A decision says what was seen, and where."}, nil
	}
	if v.Verdict == VerdictTaken && len(v.Result) > 0 {
		if err := v.tool(x).CheckResult(v.Result); err != nil {
			return invalid("/result", "It does not look like what the tool returns: %v.", err), nil
		}
	}
	ev, r, err := v.event(ctx)
	if r != nil || err != nil {
		return r, err
	}
	if m := Next(x.facts(), ev); m.Refused {
		return v.doesNotFit(ev), nil
	}
	first, r := v.second()
	if r != nil {
		return r, nil
	}
	if first == nil && v.needsSecond() {
		return nil, v.propose()
	}
	return nil, v.carryOut(ctx, ev, first)
}

// event is the verdict as the state table sees it.
func (v *verdict) event(ctx context.Context) (Event, *Refusal, error) {
	x := v.x
	ev := Event{Kind: KPerson, Verdict: v.Verdict, TwoClaim: v.twoClaim(x)}
	switch v.Verdict {
	case VerdictAllow:
		open, err := store.OpenOverlap(ctx, v.tx, digests(x.claims()), x.ID)
		if err != nil {
			return ev, nil, err
		}
		ev.OverlapsClosed = !open
	case VerdictSameAs:
		if err := v.readOnly(ctx, missing(v.effects, v.SameAs)); err != nil {
			return ev, nil, err
		}
		o := v.effects[v.SameAs]
		if o == nil || o.Account != x.Account || o.Tool != x.Tool {
			return ev, invalid("/same_as", "There is no such effect of the same tool."), nil
		}
		ev.OtherTaken = o.State == Taken && o.SameAs == ""
	}
	return ev, nil, nil
}

func missing(have map[string]*effect, id string) []string {
	if have[id] != nil {
		return nil
	}
	return []string{id}
}

func (v *verdict) doesNotFit(ev Event) *Refusal {
	x := v.x
	r := &Refusal{Code: CodeNotAllowed, EffectID: x.ID, State: string(x.State), Version: x.Version}
	switch {
	case v.Verdict == VerdictAllow && x.State == Held && !ev.OverlapsClosed:
		r.Detail = "Another effect with the same business key is not closed yet; decide that one first."
	case v.Verdict == VerdictSameAs && x.State == Held:
		r.Detail = "The other effect is not known to have taken effect."
	case x.State == InFlight:
		r.Detail = "An attempt is still performing this effect; its outcome may yet arrive."
	default:
		r.Detail = fmt.Sprintf("%s does not answer an effect that is %s.", v.Verdict, x.State)
	}
	return r
}

// carryOut applies a verdict that nothing stands against. first is the waiting verdict
// that this one confirms, or nil.
func (v *verdict) carryOut(ctx context.Context, ev Event, first *store.Decision) error {
	x, w := v.x, v.work
	d := v.row("decide")
	if first != nil {
		d.About = first.ID
		if d.Reference == "" {
			d.Reference = first.Reference
		}
		if v.result.text == "" && first.Result != "" {
			k, r := w.e.keep("/result", "", []byte(first.Result))
			if r != nil {
				return r
			}
			v.result = k
		}
		d.Result = v.result.text
	}
	var other store.Outcome // of the effect it is the same as: what its agent will be told
	if v.Verdict == VerdictSameAs {
		o, err := store.Outcomes(ctx, w.tx, []string{v.SameAs})
		if err != nil {
			return err
		}
		other = o[v.SameAs]
	}
	m, err := w.step(x, ev, "decided", map[string]any{"verdict": v.Verdict, "decision": d.ID, "person": v.by.ID}, func(m Move) {
		x.Decision, x.Reference, x.SameAs = d.ID, d.Reference, v.SameAs
		x.ReleaseAt, x.Early = w.releaseTime(x, v.Verdict)
		switch v.Verdict {
		case VerdictTaken:
			v.setResult(v.result)
		case VerdictSameAs:
			x.texts = store.Texts{Set: true, Result: other.Result}
			x.ResultSize, x.ResultDigest = v.effects[v.SameAs].ResultSize, v.effects[v.SameAs].ResultDigest
		}
	})
	if err != nil {
		return err
	}
	if v.Verdict == VerdictAllow {
		if err := w.moveClaim(ctx, x); err != nil {
			return err
		}
	}
	if m.Contradiction {
		w.contradicted(x, contradictionKind(m), d.Evidence)
	}
	if err := v.releaseNow(); err != nil {
		return err
	}
	v.finish(d)
	w.hint(x.run)
	return nil
}

// releaseNow makes a decision visible with its own transaction when nothing has to be
// waited for: a hold of 0 s, or a confirmation after it.
func (v *verdict) releaseNow() error {
	if !v.mayRelease(v.x) {
		return nil
	}
	_, err := v.step(v.x, Event{Kind: KRelease}, "released", nil, nil)
	return err
}

// releaseTime is when a person's decision becomes visible to agents, and whether it
// was made too early to be released by silence: before anything sent can have
// landed and be seen.
func (w *work) releaseTime(x *effect, verdict Verdict) (at ledger.Time, early bool) {
	again := verdict == VerdictNotTaken
	hasAmount := x.Amount != "" || x.AmountProblem != ""
	t := w.now.Add(w.e.Policy().Hold(again, hasAmount))
	if (again || verdict == VerdictStop) && (x.Attempts > 0 || x.Gap) && !x.Moment.IsZero() {
		early = x.Moment.After(w.now)
		if x.Moment.After(t) {
			t = x.Moment.Time
		}
	}
	return ledger.At(t), early
}

func (v *verdict) setResult(k kept) {
	x := v.x
	x.texts = store.Texts{Set: true, Result: k.text}
	x.ResultSize, x.ResultDigest = k.stored.Size, nil
	if k.stored.Digest != "" {
		x.ResultDigest = digestOf(k.stored.Digest)
	}
}

// row is the decision as it is recorded.
func (v *verdict) row(act string) store.Decision {
	d := store.Decision{
		ID: newID(), Effect: v.x.ID, DecisionID: v.DecisionID, At: ledger.At(v.now), Act: act, Verdict: string(v.Verdict),
		By: "person", Person: v.by.ID, Note: v.Note, Reference: v.Reference, Result: v.result.text, SameAs: v.SameAs,
		NotOurs: v.NotOurs,
	}
	if v.Evidence != "" {
		d.Evidence = v.observe(store.Evidence{Effect: v.x.ID, Source: "person", Person: v.by.ID, Verdict: evidenceVerdict(v.Verdict), Reference: v.Reference, Seen: v.Evidence})
	}
	return d
}

func evidenceVerdict(v Verdict) string {
	switch v {
	case VerdictTaken, VerdictSameAs:
		return "taken"
	case VerdictNotTaken, VerdictStop:
		return "not_taken"
	}
	return "inconclusive"
}

// finish completes the answer and records the decision with it.
func (v *verdict) finish(d store.Decision) {
	x := v.x
	v.answer.EffectID, v.answer.State, v.answer.Version = x.ID, string(x.State), x.Version
	v.answer.ReleaseAt, v.answer.Early = x.ReleaseAt.Time, x.Early
	if x.Early {
		v.answer.Moment = x.Moment.Time
	}
	d.Version = x.Version
	if b, err := json.Marshal(v.answer); err == nil {
		d.Answer = string(b)
	}
	v.decisions = append(v.decisions, d)
}

// again gives the first answer to a decision_id once more.
func (v *verdict) again(d store.Decision) (*Refusal, error) {
	if d.Person != v.by.ID || d.Verdict != "" && d.Verdict != string(v.Verdict) {
		return &Refusal{Code: CodeConflict, Reason: "decision_id", EffectID: v.x.ID, Pointer: "/decision_id", Version: v.x.Version,
			Detail: "This decision_id was used for another verdict, or by somebody else."}, nil
	}
	if err := json.Unmarshal([]byte(d.Answer), &v.answer); err != nil {
		return nil, fmt.Errorf("couldn't read a recorded answer: %w", err)
	}
	return nil, nil
}

// already answers a verdict on an effect that is decided; done is false where a new
// decision may still be made.
func (v *verdict) already() (r *Refusal, done bool, err error) {
	x := v.x
	if x.State == InFlight || x.State == Interrupted || x.State == Held {
		return nil, false, nil
	}
	same := x.DecidedBy == ByPerson && verdictOf(x) == v.Verdict && x.SameAs == v.SameAs &&
		(v.Reference == "" || v.Reference == x.Reference)
	if same {
		return nil, true, v.agree()
	}
	if x.State == Cleared && (v.Verdict == VerdictTaken || v.Verdict == VerdictStop) && x.DecidedBy != ByPerson {
		return nil, false, nil
	}
	if x.State == Cleared && (v.Verdict == VerdictTaken || v.Verdict == VerdictStop) && v.Version == x.Version {
		return nil, false, nil
	}
	return &Refusal{Code: CodeDecided, EffectID: x.ID, State: string(x.State), Version: x.Version, Decided: decidedBy(x.Row, v.past),
		Detail: "Somebody has decided this already."}, true, nil
}

func verdictOf(x *effect) Verdict {
	switch x.State {
	case Cleared:
		if x.Why == WhyAllowed {
			return VerdictAllow
		}
		return VerdictNotTaken
	case Cancelled:
		return VerdictStop
	case Taken:
		if x.SameAs != "" {
			return VerdictSameAs
		}
		return VerdictTaken
	}
	return ""
}

// agree is the same verdict once more: a confirmation when the first was made too
// early and the moment has passed, a second opinion from somebody else, or a double
// click.
func (v *verdict) agree() error {
	x := v.x
	var first store.Decision
	for _, d := range v.past {
		if d.ID == x.Decision {
			first = d
		}
	}
	switch {
	case x.Early && !x.Moment.After(v.now):
		v.answer.Confirmed = true
		x.Early = false
		if at := ledger.At(v.now); x.ReleaseAt.Before(at.Time) {
			x.ReleaseAt = at
		}
		v.wait(x)
		d := v.row("confirm")
		if err := v.record(x, "confirmed", map[string]any{"decision": d.ID, "person": v.by.ID}); err != nil {
			return err
		}
		v.settle[x.run.ID] = x.run
		v.hint(x.run)
		if err := v.releaseNow(); err != nil {
			return err
		}
		v.finish(d)
	case first.Person != v.by.ID:
		v.answer.Concurring = true
		v.finish(v.row("concur"))
	default:
		v.answer = DecideAnswer{EffectID: x.ID, State: string(x.State), Version: x.Version, ReleaseAt: x.ReleaseAt.Time, Early: x.Early}
	}
	return nil
}

// moveClaim gives the business key to an effect that was allowed over another.
func (w *work) moveClaim(ctx context.Context, x *effect) error {
	var free []claim
	for _, c := range x.claims() {
		switch holder := w.claims[string(c.digest)]; holder {
		case x.ID:
		case "":
			free = append(free, c)
		default:
			if err := store.MoveClaim(ctx, w.tx, c.digest, holder, x.ID); err != nil {
				return err
			}
			w.claims[string(c.digest)] = x.ID
		}
	}
	return w.takeAgain(x, free)
}

// acknowledge closes the open contradictions of an effect.
func (v *verdict) acknowledge(ctx context.Context) (*Refusal, error) {
	x := v.x
	switch {
	case x.Contradictions == 0:
		return &Refusal{Code: CodeNotAllowed, EffectID: x.ID, State: string(x.State), Version: x.Version, Detail: "There is no contradiction to acknowledge."}, nil
	case v.Version != x.Version:
		return &Refusal{Code: CodeStale, EffectID: x.ID, State: string(x.State), Version: x.Version, Detail: "The effect has changed since this version was read."}, nil
	case strings.TrimSpace(v.Note) == "":
		return &Refusal{Code: CodeNoteMissing, EffectID: x.ID, Pointer: "/note", Detail: "An acknowledgement says what was found."}, nil
	}
	d := v.row("acknowledge")
	d.Verdict = ""
	if _, err := store.Acknowledge(ctx, v.tx, x.ID, v.now, v.by.ID, v.Note, v.Recovery); err != nil {
		return nil, err
	}
	x.Contradictions = 0
	v.wait(x)
	if err := v.record(x, "acknowledged", map[string]any{"decision": d.ID, "person": v.by.ID, "recovery": v.Recovery}); err != nil {
		return nil, err
	}
	v.settle[x.run.ID] = x.run
	v.hint(x.run)
	v.finish(d)
	return nil, nil
}

// Undo takes back a decision of a person or a look-up that is not used yet.
func (e *Engine) Undo(ctx context.Context, p Person, u Undo) (DecideAnswer, error) {
	if strings.TrimSpace(u.Note) == "" || len(u.Note) > noteLimit {
		return DecideAnswer{}, &Refusal{Code: CodeNoteMissing, EffectID: u.EffectID, Pointer: "/note", Detail: "An undo says why."}
	}
	id, err := uuid.Parse(u.EffectID)
	if err != nil {
		return DecideAnswer{}, &Refusal{Code: CodeNotFound, Detail: "There is no such effect."}
	}
	var v *verdict
	err = e.onEffect(ctx, id.String(), func(ctx context.Context, w *work, x *effect) (*Refusal, error) {
		v = &verdict{work: w, Decide: Decide{Note: e.words(u.Note)}, by: p, x: x}
		if u.Version != 0 && u.Version != x.Version {
			return &Refusal{Code: CodeStale, EffectID: x.ID, State: string(x.State), Version: x.Version, Detail: "The effect has changed since this version was read."}, nil
		}
		allowed := x.Why == WhyAllowed
		d := v.row("undo")
		d.Verdict, d.About = "", x.Decision
		m, err := w.step(x, Event{Kind: KUndo, ClaimLost: w.claimLost(x)}, "undone", map[string]any{"decision": d.ID, "person": p.ID}, nil)
		if err != nil {
			return nil, err
		}
		if m.Refused {
			return &Refusal{Code: CodeNotAllowed, EffectID: x.ID, State: string(x.State), Version: x.Version, Detail: "Only a decision of a person or a look-up that no agent has used yet can be taken back."}, nil
		}
		if allowed {
			for _, c := range x.claims() {
				w.drop(c, x.ID)
			}
		}
		w.hint(x.run)
		v.finish(d)
		return nil, nil
	})
	if err != nil {
		return DecideAnswer{}, err
	}
	return v.answer, nil
}

// AddEvidence records what a person saw without deciding.
func (e *Engine) AddEvidence(ctx context.Context, p Person, a AddEvidence) (DecideAnswer, error) {
	seen := strings.TrimSpace(strings.TrimSpace(a.Seen) + "\n" + strings.TrimSpace(a.Note))
	if seen == "" || len(seen) > noteLimit {
		return DecideAnswer{}, &Refusal{Code: CodeNoteMissing, EffectID: a.EffectID, Pointer: "/seen", Detail: fmt.Sprintf("It says what was seen, in at most %d bytes.", noteLimit)}
	}
	id, err := uuid.Parse(a.EffectID)
	if err != nil {
		return DecideAnswer{}, &Refusal{Code: CodeNotFound, Detail: "There is no such effect."}
	}
	var out DecideAnswer
	err = e.onEffect(ctx, id.String(), func(ctx context.Context, w *work, x *effect) (*Refusal, error) {
		data := ""
		if !a.NextLook.IsZero() {
			b, err := json.Marshal(map[string]time.Time{"next_look": a.NextLook.UTC()})
			if err != nil {
				return nil, err
			}
			data = string(b)
		}
		w.observe(store.Evidence{Effect: x.ID, Source: "person", Person: p.ID, Verdict: "inconclusive", Seen: e.words(seen), Data: data})
		w.hint(x.run)
		out = DecideAnswer{EffectID: x.ID, State: string(x.State), Version: x.Version}
		return nil, nil
	})
	return out, err
}
