package effects

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"quittance/ledger"
	store "quittance/ledger/effects"
	"quittance/ledger/queue"
	"quittance/ledger/runs"
	"quittance/reconcile/canon"
	"quittance/reconcile/lookup"
)

// overlapsShown bounds the list of other effects with the same business key.
const overlapsShown = 50

// Effect reads one effect with its whole history; account 0 is a person, who sees
// every account's. Refused with not_found.
func (e *Engine) Effect(ctx context.Context, account int64, id string) (EffectView, error) {
	missing := noEffect()
	key, err := uuid.Parse(id)
	if err != nil {
		return EffectView{}, missing
	}
	d, err := store.Get(ctx, e.db, account, key.String())
	if errors.Is(err, ledger.ErrNotFound) {
		return EffectView{}, missing
	}
	if err != nil {
		return EffectView{}, err
	}
	v := e.viewOf(d)
	if err := e.history(ctx, d, &v); err != nil {
		return EffectView{}, err
	}
	return v, nil
}

func (e *Engine) viewOf(d *store.Detail) EffectView {
	v := EffectView{
		EffectID: d.ID, RunID: d.RunName, Agent: d.Agent, Account: d.AccountName, Tool: d.Tool, Key: canon.Key(d.Key).String(),
		BusinessKey: d.BusinessKey, Occurrence: d.Occurrence, CallID: d.CallID, ClientTime: d.ClientTime, Context: bytesOf(d.ContextText),
		State: string(d.State), Why: string(d.Why), Version: d.Version, Summary: d.Summary, AmountProblem: d.AmountProblem,
		Arguments: []byte(d.ArgumentText), Result: bytesOf(d.Result), Error: bytesOf(d.Error), Reference: d.Reference, SameAs: d.SameAs,
		RepeatOf: d.RepeatOf, DecidedBy: string(d.DecidedBy), ReleaseAt: d.ReleaseAt.Time, Released: d.Released, UsedAt: d.UsedAt.Time,
		Moment: d.Moment.Time, Early: d.Early, OpenedAt: d.OpenedAt.Time, WaitingSince: d.WaitingSince.Time,
		Blind: e.Blind(d.Tool),
	}
	v.Amount, _ = moneyOf(&d.Row)
	if d.ResultSize > 0 || d.ResultDigest != nil {
		v.Stored = &Stored{Size: d.ResultSize, Digest: hex.EncodeToString(d.ResultDigest), Cut: d.Result == "", Limit: ResultLimit}
	}
	return v
}

func (e *Engine) history(ctx context.Context, d *store.Detail, v *EffectView) error {
	attempts, err := store.AttemptsOf(ctx, e.db, d.ID)
	if err != nil {
		return err
	}
	for _, a := range attempts {
		v.Attempts = append(v.Attempts, AttemptView{a.Number, a.Fence, a.Worker, a.BegunAt.Time, a.Deadline.Time})
	}
	evidence, err := store.EvidenceOf(ctx, e.db, d.ID)
	if err != nil {
		return err
	}
	for _, o := range evidence {
		x := EvidenceView{At: o.At.Time, Source: o.Source, Person: o.PersonName, Fence: o.Fence, Verdict: o.Verdict, Reference: o.Reference, Seen: o.Seen}
		if o.Source == "person" && o.Data != "" {
			var next struct {
				NextLook time.Time `json:"next_look"`
			}
			_ = json.Unmarshal([]byte(o.Data), &next) // ours; at worst no date is shown
			x.NextLook = next.NextLook
		}
		v.Evidence = append(v.Evidence, x)
	}
	decisions, err := store.Decisions(ctx, e.db, []string{d.ID})
	if err != nil {
		return err
	}
	for _, c := range decisions[d.ID] {
		x := DecisionView{c.ID, c.At.Time, c.Act, c.Verdict, c.By, c.Person, c.PersonName, c.Note, c.Reference}
		v.Decisions = append(v.Decisions, x)
		if c.ID == d.Proposal {
			v.Proposal = &x
		}
	}
	contradictions, err := store.ContradictionsOf(ctx, e.db, d.ID)
	if err != nil {
		return err
	}
	for _, c := range contradictions {
		v.Contradictions = append(v.Contradictions, ContradictionView{c.At.Time, c.Kind, c.Recovery, c.AcknowledgedAt.Time, c.AcknowledgedBy, c.Note})
	}
	refused, err := runs.Refusals(ctx, e.db, d.Run, d.OpenedAt.Time)
	if err != nil {
		return err
	}
	for _, r := range refused {
		v.Refused = append(v.Refused, RefusedView{r.At.Time, r.Call, r.Reason, r.Worker, r.AttemptID})
	}
	overlaps, err := store.OverlapsOf(ctx, e.db, d.ID, overlapsShown)
	if err != nil {
		return err
	}
	for _, o := range overlaps {
		amount, _ := moneyOf(&o.Row)
		v.Overlaps = append(v.Overlaps, OverlapView{
			EffectID: o.ID, RunID: o.RunName, State: string(o.State), OpenedAt: o.OpenedAt.Time, Amount: amount, Arguments: []byte(o.ArgumentText),
			Owner: o.ClaimOwner == o.ID || o.ClaimWasOwner == o.ID,
		})
	}
	last, err := store.LastEvents(ctx, e.db, []int64{d.Run})
	v.LogPosition = e.positionOf(d.Account, d.RunName, last[d.Run])
	return err
}

const (
	queueLimit    = 200
	queueStandard = 50
)

// filter is the query as the ledger reads it.
func (e *Engine) filter(q QueueQuery) (queue.Filter, *Refusal) {
	f := queue.Filter{
		Account: q.Account, Tool: q.Tool, Agent: q.Agent, RunID: q.RunID, BusinessKey: q.BusinessKey, State: q.State, Limit: q.Limit,
		Words: q.Words, Currency: q.Currency, Least: q.Least, Most: q.Most, Older: q.Older,
	}
	switch q.State {
	case "", "interrupted", "held", "contradicted", "second", "confirm":
	default:
		return f, invalid("/state", "It is interrupted, held, contradicted, second or confirm.")
	}
	if q.Overdue {
		o := e.overdue()
		f.Overdue = &o
	}
	return f, nil
}

func (e *Engine) overdue() queue.Overdue {
	o := queue.Overdue{Default: e.Policy().Tool("").OverdueAfter, Tools: map[string]time.Duration{}}
	for _, t := range e.Policy().Tools() {
		o.Tools[t.Name] = t.OverdueAfter
	}
	return o
}

// Queue reads one page of what waits for a person, longest waiting first.
func (e *Engine) Queue(ctx context.Context, q QueueQuery) (QueuePage, error) {
	f, r := e.filter(q)
	if r != nil {
		return QueuePage{}, r
	}
	if f.Limit == 0 {
		f.Limit = queueStandard
	}
	if f.Limit < 1 || f.Limit > queueLimit {
		return QueuePage{}, invalid("/limit", "A page holds 1 to %d rows.", queueLimit)
	}
	if q.Cursor != "" {
		place, err := parseCursor(q.Cursor)
		if err != nil {
			return QueuePage{}, invalid("/cursor", "It is not one that this server gave.")
		}
		f.After = place
	}
	f.Limit++ // one more tells whether there is another page
	items, err := queue.Page(ctx, e.db, f)
	if err != nil {
		return QueuePage{}, err
	}
	var page QueuePage
	if len(items) == f.Limit {
		items = items[:f.Limit-1]
		last := items[len(items)-1]
		page.Next = cursor(queue.Place{Since: last.WaitingSince.Time, ID: last.ID})
	}
	for _, x := range items {
		page.Items = append(page.Items, e.queueItem(x))
	}
	return page, nil
}

func (e *Engine) queueItem(x queue.Item) QueueItem {
	amount, _ := moneyOf(&store.Row{Intent: store.Intent{Amount: x.Amount, Currency: x.Currency, Decimals: x.Decimals}})
	t := e.Policy().Tool(x.Tool)
	return QueueItem{
		EffectID: x.ID, RunID: x.RunID, Agent: x.Agent, Account: x.Account, Tool: x.Tool, BusinessKey: x.BusinessKey, Summary: x.Summary,
		Amount: amount, State: x.State, Why: x.Why, Version: x.Version, Attempts: x.Attempts, Refused: x.Refused,
		WaitingSince: x.WaitingSince.Time, Waiting: x.Now.Sub(x.WaitingSince.Time), Contradicted: x.Contradictions > 0, SecondWaits: x.Proposed,
		Confirm: x.Early, Known: known(x, e.Blind(x.Tool)), Provable: provable(x), Overdue: x.Now.Sub(x.WaitingSince.Time) > t.OverdueAfter,
	}
}

// known says in a few words what is known.
func known(x queue.Item, blind bool) string {
	switch {
	case x.Contradictions > 0:
		return "evidence contradicts what was decided"
	case x.Proposed:
		return "a verdict waits for a second person"
	case x.Early:
		return "decided before it could be sure; confirm that it still holds"
	case x.State == string(Held) && x.Why == string(WhyNoBusinessKey):
		return "not started: its business key is incomplete"
	case x.State == string(Held):
		return "not started: another effect has the same business key"
	case x.Why == string(WhyReference):
		return "reported with a reference that already proves another effect"
	case x.Why == string(WhyLogGap):
		return "the log may have lost what became of it"
	case x.Attempts == 0:
		return "no attempt is known"
	case x.Ended:
		return "look-ups ended without proof" + lastLook(x)
	case x.Reason != "":
		return lookWords(lookup.Reason(x.Reason), x.LookWhy)
	case blind:
		return "started, outcome unknown; no look-up"
	}
	return "started, outcome unknown"
}

// lastLook is what the last of them said, where that is more than nothing.
func lastLook(x queue.Item) string {
	if x.Reason == "" || lookup.Reason(x.Reason) == lookup.NotYet {
		return ""
	}
	return "; the last: " + lookWords(lookup.Reason(x.Reason), x.LookWhy)
}

// provable is when the last look of a row that shows it could prove that it was not taken.
func provable(x queue.Item) time.Time {
	if lookup.Reason(x.Reason) != lookup.NotYet || x.Ended || !x.Earliest.After(x.Now) {
		return time.Time{}
	}
	return x.Earliest.Time
}

func cursor(p queue.Place) string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.Since.UTC().Format(time.RFC3339Nano) + " " + p.ID))
}

func parseCursor(s string) (*queue.Place, error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return nil, err
	}
	when, id, _ := strings.Cut(string(b), " ")
	t, err := time.Parse(time.RFC3339Nano, when)
	if err != nil {
		return nil, err
	}
	key, err := uuid.Parse(id)
	if err != nil {
		return nil, err
	}
	return &queue.Place{Since: t, ID: key.String()}, nil
}
