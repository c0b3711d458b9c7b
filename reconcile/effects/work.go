package effects

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"quittance/ledger"
	store "quittance/ledger/effects"
	"quittance/ledger/lookups"
	"quittance/ledger/runs"
	"quittance/ledger/system"
	"quittance/reconcile/policy"
)

// work is one transaction's view: the runs it locked, the effects it read, what it
// decided, and what it will write. Every change to a run or an effect goes through
// one, and all of it is written by flush.
type work struct {
	e   *Engine
	ctx context.Context // of the transaction
	tx  *ledger.Tx
	sys system.Moment
	now time.Time

	runs    map[int64]*run
	names   map[runName]*run
	effects map[string]*effect
	keys    map[runKey]*effect
	claims  map[string]string        // holders of the claims that are locked
	last    map[string]store.Attempt // of effects in flight that a begin names

	batch          store.Batch
	attempts       []store.Attempt
	evidence       []store.Evidence
	decisions      []store.Decision
	contradictions []store.Contradiction
	refusals       []runs.Refusal
	fresh          []claimOf // claims taken for effects that are not written yet
	dropped        []store.Dropped
	withdraw       []claimOf // claims whose unused allows are to be withdrawn
	settle         map[int64]*run
	plans          map[string]*lookups.Change // how their downstreams are asked from now on
	planned        bool                       // a look-up is due at once
	hints          map[string]struct{}
	order          []*effect // changed, in the order of their first change
}

type runName struct {
	account int64
	name    string
}

type runKey struct {
	run int64
	key string
}

type claimOf struct {
	claim
	effect string
}

type run struct {
	*runs.Row
	last   store.Event // its latest event, when known
	paused bool        // this transaction pauses it
}

type effect struct {
	*store.Row
	run   *run
	isNew bool
	was   int64 // version as read
	dirty bool
	text  string // arguments, when new
	ctx   string // context, when new
	texts store.Texts
}

// work begins a transaction's view; it is of use once lock was called.
func (e *Engine) work(ctx context.Context, tx *ledger.Tx) *work {
	return &work{
		e: e, ctx: ctx, tx: tx,
		runs: map[int64]*run{}, names: map[runName]*run{}, effects: map[string]*effect{}, keys: map[runKey]*effect{},
		claims: map[string]string{}, last: map[string]store.Attempt{}, settle: map[int64]*run{}, plans: map[string]*lookups.Change{}, hints: map[string]struct{}{},
	}
}

// look reads the clock and the log gap. It follows every lock: what was read before a
// lock that had to be waited for is old. A lease may have passed meanwhile, and a
// person may have acknowledged a gap.
func (w *work) look(ctx context.Context) error {
	sys, err := system.Read(ctx, w.tx)
	w.sys, w.now = sys, sys.Now.Truncate(time.Microsecond)
	return err
}

// lock locks and keeps runs, and then looks at the clock; what does not exist is
// simply not there afterwards.
func (w *work) lock(ctx context.Context, names []runName, effects []string, ids []int64) error {
	accounts, texts := make([]int64, len(names)), make([]string, len(names))
	for i, n := range names {
		accounts[i], texts[i] = n.account, n.name
	}
	rows, err := runs.Lock(ctx, w.tx, accounts, texts, effects, ids)
	if err != nil {
		return err
	}
	for _, r := range rows {
		w.keep(r)
	}
	return w.look(ctx)
}

func (w *work) keep(r *runs.Row) *run {
	if have := w.runs[r.ID]; have != nil {
		return have
	}
	x := &run{Row: r}
	w.runs[r.ID] = x
	w.names[runName{r.Account, r.RunID}] = x
	return x
}

// load reads effects of runs that are locked.
func (w *work) load(ctx context.Context, want store.Wanted) error {
	rows, err := store.Load(ctx, w.tx, want)
	if err != nil {
		return err
	}
	for _, r := range rows {
		r.Gap = r.Gap || w.sys.Touched(r.OpenedAt.Time, r.Fence)
		if w.effects[r.ID] == nil && w.runs[r.Run] != nil {
			w.add(&effect{Row: r, run: w.runs[r.Run], was: r.Version})
		}
	}
	return nil
}

func (w *work) add(x *effect) {
	w.effects[x.ID] = x
	w.keys[runKey{x.Run, string(x.Key)}] = x
}

func (x *effect) facts() Facts {
	return Facts{
		State: x.State, Why: x.Why, By: x.DecidedBy, From: x.DecidedFrom, Released: x.Released, Used: !x.UsedAt.IsZero(),
		Attempts: x.Attempts, Gap: x.Gap, SameAs: x.SameAs != "",
	}
}

// tool is the effect's tool under the policy in force.
func (w *work) tool(x *effect) *policy.Tool { return w.e.Policy().Tool(x.Tool) }

// step asks the state table what an event does to an effect and, when it does
// something, applies it. edit, if not nil, sets what the decision brings along
// (reference, result, decision) before the row is judged.
func (w *work) step(x *effect, ev Event, kind string, cause any, edit func(m Move)) (Move, error) {
	before := x.facts()
	m := Next(before, ev)
	after := After(before, m)
	if after == before && m.Contradiction == "" {
		return m, nil
	}
	if err := w.move(x, before, after, m, edit); err != nil {
		return m, err
	}
	if m.Reply == ReplyReplay || m.Reply == ReplyCancelled {
		kind = "answered" // nothing was begun: the agent was told what is on record
	}
	return m, w.record(x, kind, cause)
}

func (w *work) move(x *effect, before, after Facts, m Move, edit func(m Move)) error {
	x.State, x.Why, x.DecidedBy, x.DecidedFrom = m.To, m.Why, m.By, m.From
	open := m.To == InFlight || m.To == Interrupted || m.To == Held
	if open {
		if x.Reference != "" || x.SameAs != "" || x.ResultSize != 0 || x.ResultDigest != nil || before.State == Taken {
			x.texts = store.Texts{Set: true}
		}
		x.Reference, x.SameAs, x.ResultSize, x.ResultDigest = "", "", 0, nil
		x.Decision, x.Early, x.ReleaseAt, x.UsedAt = "", false, ledger.Time{}, ledger.Time{}
	} else if x.State == Cleared && before.State != Cleared {
		x.Reference, x.SameAs = "", ""
	}
	x.Released = m.Release
	if m.Release && x.ReleaseAt.IsZero() {
		x.ReleaseAt = ledger.At(w.now)
	}
	if m.Release {
		x.Early = false
	}
	if m.Use && x.UsedAt.IsZero() {
		x.UsedAt = ledger.At(w.now)
	}
	if before.State != m.To {
		x.Proposal = ""
	}
	if m.Contradiction != "" {
		x.Contradictions++
	}
	if edit != nil {
		edit(m)
	}
	if !Valid(x.facts()) {
		return fmt.Errorf("row %s leaves effect %s in a shape that no rule allows: %+v", m.Row, x.ID, x.facts())
	}
	if err := w.moveClaims(x, before, after); err != nil {
		return err
	}
	if m.Contradiction != "" || m.To == Interrupted && before.State != InFlight && before.State != None {
		for _, c := range x.claims() {
			w.withdraw = append(w.withdraw, claimOf{c, x.ID})
		}
	}
	w.wait(x)
	w.plan(x, before, after)
	w.settle[x.run.ID] = x.run
	if needsPerson(x) && !x.run.State.Closed() {
		// Later operations of this batch must see the pause; a run that is ready to be
		// taken is no more so.
		x.run.paused = true
	}
	return nil
}

// needsPerson tells whether an effect keeps its run paused.
func needsPerson(x *effect) bool { return PausesRun(x.facts(), x.Contradictions > 0) }

// wait keeps the time since which a person may be needed; the queue is ordered by it.
func (w *work) wait(x *effect) {
	switch {
	case x.State == Interrupted || x.State == Held || x.Contradictions > 0:
		if x.WaitingSince.IsZero() || x.WaitingSince.After(w.now) {
			x.WaitingSince = ledger.At(w.now)
		}
	case x.Early && !x.Moment.IsZero():
		// Then it has to be confirmed, unless a look-up does.
		x.WaitingSince = x.Moment
		if w.tool(x).HasLookup() {
			x.WaitingSince = ledger.At(x.Moment.Add(recheckPatience))
		}
	default:
		x.WaitingSince = ledger.Time{}
	}
}

// record raises the version and adds the event that carries the row as it now is.
func (w *work) record(x *effect, kind string, cause any) error {
	if !x.dirty {
		x.dirty = true
		w.order = append(w.order, x)
	}
	x.Version++
	x.ChangedAt = ledger.At(w.now)
	var arguments string
	if x.Version == 1 {
		sum := sha256.Sum256([]byte(x.text))
		arguments = hex.EncodeToString(sum[:])
	}
	var why []byte
	if cause != nil {
		var err error
		if why, err = json.Marshal(cause); err != nil {
			return fmt.Errorf("couldn't encode an event: %w", err)
		}
	}
	v := store.Event{At: ledger.At(w.now), Run: x.Run, Effect: x.ID, Version: x.Version, Kind: kind}
	v.Seal(&x.Standing, arguments, why)
	w.batch.Events = append(w.batch.Events, v)
	return nil
}

// runEvent adds an event of the run itself.
func (w *work) runEvent(r *run, kind string, cause any) error {
	data, err := json.Marshal(cause)
	if err != nil {
		return fmt.Errorf("couldn't encode an event: %w", err)
	}
	v := store.Event{At: ledger.At(w.now), Run: r.ID, Kind: kind}
	v.SealData(string(data))
	w.batch.Events = append(w.batch.Events, v)
	return nil
}

// observe adds evidence and returns its id.
func (w *work) observe(v store.Evidence) string {
	v.ID, v.At = newID(), ledger.At(w.now)
	w.evidence = append(w.evidence, v)
	return v.ID
}

// contradicted records how evidence disagrees, where a move says that it does.
func (w *work) contradicted(x *effect, m Move, evidence string) {
	if m.Contradiction == "" {
		return
	}
	w.contradictions = append(w.contradictions, store.Contradiction{
		ID: newID(), Effect: x.ID, At: ledger.At(w.now), Kind: string(m.Contradiction), Evidence: evidence,
	})
	w.e.log.Warn("contradiction", "effect", x.ID, "run", x.run.RunID, "tool", x.Tool, "kind", m.Contradiction)
}

// refuse keeps that a start or a begin was refused.
func (w *work) refuse(r *run, refusal runs.Refusal) {
	refusal.Run, refusal.At = r.ID, ledger.At(w.now)
	w.refusals = append(w.refusals, refusal)
	w.hint(r)
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// digestOf is a digest as it is stored; nil for "".
func digestOf(text string) []byte {
	if text == "" {
		return nil
	}
	d, _ := hex.DecodeString(text) // ours, or checked when it came
	return d
}
