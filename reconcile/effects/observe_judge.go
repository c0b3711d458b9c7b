package effects

import (
	"context"

	"quittance/ledger"
	store "quittance/ledger/effects"
	"quittance/ledger/observed"
	"quittance/ledger/runs"
	"quittance/reconcile/policy"
)

// judged is what enforcing would have answered, and which call or effect it would have
// been because of.
type judged struct {
	would        observed.Would
	why          string
	call, effect string
}

func because(would observed.Would, why string) judged { return judged{would: would, why: why} }

// judge works out what enforcing would have answered a begin, from the observed calls as
// their agents told of them and from the effects of times when the tool was enforced.
// What is known of the call itself comes before what would have kept its run: people
// would have decided that, and the run gone on.
func (w *work) judge(ctx context.Context, p *prepared, c call, r *run, last *observed.Call) (judged, error) {
	switch {
	case w.sys.Behind():
		return because(observed.Refuse, string(CodeLogBehind)), nil
	case r.State.Closed():
		return because(observed.Refuse, string(CodeRunClosed)), nil
	case !p.written && (!sameLease(r, p.lease) || !r.LeaseUntil.After(w.now)):
		return because(observed.Refuse, string(CodeLeaseLost)), nil
	}
	if err := w.load(ctx, store.Wanted{Runs: []int64{r.ID}, Keys: [][]byte{c.key[:]}}); err != nil {
		return judged{}, err
	}
	if x := w.keys[runKey{r.ID, string(c.key[:])}]; x != nil {
		if j := byEffect(x, c); j.would != observed.Proceed {
			return j, nil
		}
	}
	if last != nil {
		return w.byCall(last, c, r, p.written), nil
	}
	if len(c.missing) > 0 {
		return because(observed.Hold, string(WhyNoBusinessKey)), nil
	}
	holder, err := observed.Holder(ctx, w.tx, r.ID, digests(c.claims), repeats(c))
	if err != nil || holder != "" {
		return judged{observed.Hold, string(WhyOverlap), "", holder}, err
	}
	other, err := observed.Held(ctx, w.tx, r.ID, c.key[:], digests(c.claims), repeats(c))
	if err != nil {
		return judged{}, err
	}
	if other != nil {
		return judged{observed.Hold, string(WhyOverlap), other.ID, ""}, nil
	}
	if r.State == runs.Paused {
		return because(observed.Wait, string(CodeRunPaused)), nil
	}
	other, err = observed.Waits(ctx, w.tx, r.ID, r.Epoch, c.key[:], w.now)
	if err != nil {
		return judged{}, err
	}
	if other != nil {
		return judged{observed.Wait, string(CodeRunPaused), other.ID, ""}, nil
	}
	return because(observed.Proceed, ""), nil
}

// byEffect is what the effect of the same key would have answered, from a time when the
// tool was enforced.
func byEffect(x *effect, c call) judged {
	j := judged{effect: x.ID, would: observed.Proceed}
	switch x.State {
	case Taken, Failed:
		j.would = observed.Replay
	case Cancelled:
		j.would, j.why = observed.Refuse, string(CodeCancelled)
	case InFlight:
		j.would, j.why = observed.Refuse, string(CodeInFlight)
	case Interrupted, Held:
		j.would, j.why = observed.Pause, string(x.Why)
	}
	if x.State != InFlight && x.State != Interrupted && x.State != Held && !x.Released {
		j.would, j.why = observed.Pause, "releasing"
	}
	if string(x.CallDigest) != string(c.digest[:]) {
		j.would, j.why = observed.Refuse, string(CodeConflict)
	}
	return j
}

// byCall is what the last attempt at the same call would have answered.
// A file's agent has lost sight of it once it writes the intent again.
func (w *work) byCall(last *observed.Call, c call, r *run, written bool) judged {
	j := judged{call: last.ID, would: observed.Pause}
	switch {
	case string(last.CallDigest) != string(c.digest[:]):
		j.would, j.why = observed.Refuse, string(CodeConflict)
	case last.Outcome == string(WordTaken), last.Outcome == string(WordFailed):
		j.would = observed.Replay
	case last.Outcome == string(WordUnknown):
		j.why = string(WhyUnknown)
	case !last.Deadline.After(w.now):
		j.why = string(WhyDeadline)
	case written, last.Epoch != r.Epoch:
		j.why = string(WhyLease)
	default:
		j.would, j.why = observed.Refuse, string(CodeInFlight)
	}
	return j
}

// repeats tells whether the same claim again in the same run counts.
func repeats(c call) bool { return c.tool.Repeat != policy.RepeatAllow }

// evidenceOf is something that the server itself knows about an effect.
func evidenceOf(x *effect, seen string) store.Evidence {
	return store.Evidence{Effect: x.ID, Source: "system", Verdict: "inconclusive", Seen: seen}
}

// observedBatch is how many observed calls are given their claims again at a time.
const observedBatch = 500

// rekeyObserved gives observed calls of a tool their claims under its present template:
// else an enforced begin would not find them. All at once, unlike those of effects: they
// keep nothing from anybody while it lasts.
func (w *work) rekeyObserved(ctx context.Context, tool string, in *keying) error {
	for {
		more, err := w.rekeySomeObserved(ctx, tool, in)
		if !more || err != nil {
			return err
		}
	}
}

func (w *work) rekeySomeObserved(ctx context.Context, tool string, in *keying) (more bool, err error) {
	list, err := observed.Stale(ctx, w.tx, tool, in.source(tool), observedBatch)
	if len(list) == 0 || err != nil {
		return false, err
	}
	out := make([]observed.Rekeyed, len(list))
	for i, x := range list {
		c, err := in.again(tool, x)
		if err != nil {
			return false, err
		}
		out[i] = observed.Rekeyed{ID: x.ID, BusinessKey: c.key, Claim: c.digest, Call: c.call}
	}
	return true, observed.Rekey(ctx, w.tx, in.source(tool), out)
}

// keyObserved brings every observed call in line with a policy's templates, a transaction
// a batch, before anything is decided under it.
func (e *Engine) keyObserved(ctx context.Context) error {
	tools, err := observed.Tools(ctx, e.db)
	if err != nil {
		return err
	}
	for _, tool := range tools {
		for more := true; more; {
			err := e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
				w := e.work(ctx, tx)
				if err := w.look(ctx); err != nil {
					return err
				}
				in, err := w.keying(ctx)
				if err == nil {
					more, err = w.rekeySomeObserved(ctx, tool, in)
				}
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
