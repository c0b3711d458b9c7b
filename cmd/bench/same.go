package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"quittance/ledger"
	store "quittance/ledger/effects"
	"quittance/ledger/runs"
)

// same is the second ceiling: exactly the rows that the service leaves behind (effect,
// attempt, claim, two events), written set-based into its own tables by calls that
// share a commit, with nothing locked, read or decided. What the service costs above
// this is its rules; what this costs above the first ceiling is what it keeps.
type same struct {
	b                *bench
	begins, finishes chan *written
}

type written struct {
	insert  store.Insert
	attempt store.Attempt
	done    chan error
}

func newSame(ctx context.Context, b *bench) *same {
	s := &same{b, make(chan *written, 1024), make(chan *written, 1024)}
	for range 2 {
		go s.serve(ctx, s.begins, s.begin)
		go s.serve(ctx, s.finishes, s.finish)
	}
	return s
}

func (s *same) serve(ctx context.Context, in chan *written, write func(context.Context, *ledger.Tx, []*written) error) {
	for {
		var batch []*written
		select {
		case <-ctx.Done():
			return
		case w := <-in:
			batch = append(batch, w)
		}
		for len(batch) < 256 && len(in) > 0 {
			batch = append(batch, <-in)
		}
		err := s.b.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error { return write(ctx, tx, batch) })
		for _, w := range batch {
			w.done <- err
		}
	}
}

func (s *same) begin(ctx context.Context, tx *ledger.Tx, list []*written) error {
	var claims []store.Claim
	var b store.Batch
	for _, w := range list {
		in := w.insert.Intent
		claims = append(claims, store.Claim{Digest: in.Claim, Account: in.Account, Tool: in.Tool, BusinessKey: in.BusinessKey, Effect: in.ID, TakenAt: in.OpenedAt})
		b.Inserts = append(b.Inserts, w.insert)
		b.Attempts = append(b.Attempts, w.attempt)
		b.Events = append(b.Events, event(w, "begin"))
	}
	if _, err := store.TakeClaims(ctx, tx, claims); err != nil {
		return err
	}
	return store.Write(ctx, tx, &b)
}

func (s *same) finish(ctx context.Context, tx *ledger.Tx, list []*written) error {
	var b store.Batch
	for _, w := range list {
		now := ledger.At(time.Now())
		st := &w.insert.Standing
		st.State, st.Version, st.DecidedBy, st.Reference = store.Taken, 2, store.ByAgent, w.insert.ID
		st.Released, st.ReleaseAt, st.UsedAt, st.ChangedAt, st.ResultSize = true, now, now, now, 32
		b.Updates = append(b.Updates, store.Update{ID: w.insert.ID, Was: 1, Standing: *st, Texts: store.Texts{Set: true, Result: `{"payment_id":"` + w.insert.ID + `"}`}})
		b.Events = append(b.Events, event(w, "finish"))
	}
	return store.Write(ctx, tx, &b)
}

func event(w *written, kind string) store.Event {
	cause, _ := json.Marshal(map[string]string{"attempt_id": w.attempt.AttemptID})
	v := store.Event{At: w.insert.ChangedAt, Run: w.insert.Run, Effect: w.insert.ID, Version: w.insert.Version, Kind: kind}
	v.Seal(&w.insert.Standing, "", cause)
	return v
}

// agent opens a run and returns a function that leaves the rows of one effect.
func (s *same) agent(ctx context.Context) (func() error, error) {
	l, err := s.b.open(ctx)
	if err != nil {
		return nil, err
	}
	r, err := runs.Get(ctx, s.b.db, s.b.account, l.RunID)
	if err != nil {
		return nil, err
	}
	i := 0
	return func() error {
		i++
		arguments := s.b.arguments(l.RunID, i)
		key := sha256.Sum256([]byte(l.RunID + arguments))
		now := ledger.At(time.Now())
		two := 2
		w := &written{done: make(chan error, 1), insert: store.Insert{
			Intent: store.Intent{
				ID: uuid.Must(uuid.NewV7()).String(), Account: r.Account, Run: r.ID, Key: key[:], Tool: "send_payment", Occurrence: 1,
				Arguments: arguments, CallDigest: key[:], BusinessKey: fmt.Sprintf("ACME/%s-%d", l.RunID, i), Claim: key[:],
				Summary: "Pay 4200.00 USD to ACME Tools", Amount: "420000", Currency: "USD", Decimals: &two, OpenedAt: now,
			},
			Standing: store.Standing{State: store.InFlight, Version: 1, Attempts: 1, Fence: 1, Deadline: ledger.At(now.Add(time.Minute)), Moment: ledger.At(now.Add(time.Hour)), ChangedAt: now},
		}}
		w.attempt = store.Attempt{Effect: w.insert.ID, Number: 1, Fence: 1, AttemptID: "a", Epoch: 1, BegunAt: now, Deadline: w.insert.Deadline}
		s.begins <- w
		if err := <-w.done; err != nil {
			return err
		}
		s.finishes <- w
		return <-w.done
	}, nil
}
