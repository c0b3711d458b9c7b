package wake

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"quittance/ledger"
	"quittance/ledger/audit"
	"quittance/ledger/wakes"
)

// States are those a log can be narrowed to.
var States = []string{stateDue, stateDelivered, "overtaken", stateGivenUp}

// Query narrows the log; zero values filter nothing.
type Query struct {
	Endpoint, State, Cursor string
	Limit                   int // 1 to 200; 0 means 50
}

// Errors of the log.
var (
	ErrNotFound = errors.New("there is no such delivery")
	ErrSending  = errors.New("this delivery is being sent just now")
	ErrCursor   = errors.New("it is no next_cursor of this list")
	ErrState    = errors.New("it is due, delivered, overtaken or given_up")
	ErrLimit    = errors.New("a page holds 1 to 200 deliveries")
)

// Log reads one page, latest first. next is "" on the last one. The error may be
// [ErrCursor], [ErrState] or [ErrLimit].
func (s *Service) Log(ctx context.Context, q Query) (list []wakes.Logged, next string, err error) {
	if q.Limit == 0 {
		q.Limit = 50
	}
	if q.Limit < 1 || q.Limit > 200 {
		return nil, "", ErrLimit
	}
	if q.State != "" && !slices.Contains(States, q.State) {
		return nil, "", ErrState
	}
	f := wakes.Filter{Endpoint: q.Endpoint, State: q.State, Limit: q.Limit + 1}
	if q.Cursor != "" {
		b, err := base64.RawURLEncoding.DecodeString(q.Cursor)
		when, id, _ := strings.Cut(string(b), " ")
		at, err1 := time.Parse(time.RFC3339Nano, when)
		key, err2 := uuid.Parse(id)
		if err != nil || err1 != nil || err2 != nil {
			return nil, "", ErrCursor
		}
		f.After = &wakes.Place{MadeAt: at, ID: key.String()}
	}
	if list, err = wakes.Page(ctx, s.db, f); err != nil {
		return nil, "", err
	}
	if len(list) > q.Limit {
		list = list[:q.Limit]
		last := list[len(list)-1]
		next = base64.RawURLEncoding.EncodeToString([]byte(last.MadeAt.UTC().Format(time.RFC3339Nano) + " " + last.ID))
	}
	return list, next, nil
}

// Delivery reads one and its attempts; [ErrNotFound].
func (s *Service) Delivery(ctx context.Context, id string) (*wakes.Logged, []wakes.Attempt, error) {
	key, err := uuid.Parse(id)
	if err != nil {
		return nil, nil, ErrNotFound
	}
	d, err := wakes.ByID(ctx, s.db, key.String())
	if err != nil {
		return nil, nil, err
	}
	if d == nil {
		return nil, nil, ErrNotFound
	}
	list, err := wakes.Attempts(ctx, s.db, d.ID)
	return d, list, err
}

// Replay sends a delivery again at once, under its id, whatever became of it and of its
// run. Who asked for it is the audit's line; [ErrNotFound], [ErrSending].
func (s *Service) Replay(ctx context.Context, id string, who audit.Row) error {
	d, _, err := s.Delivery(ctx, id)
	if err != nil {
		return err
	}
	return s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		ok, err := wakes.Replay(ctx, tx, d.ID)
		if err != nil {
			return err
		}
		if !ok {
			return ErrSending
		}
		who.Action, who.Outcome, who.Subject = "delivery.replay", "done", "delivery:"+d.ID
		who.Before = `{"state":"` + d.State + `"}`
		return audit.Add(ctx, tx, who)
	})
}

// Known tells whether the policy in force names the endpoint.
func (s *Service) Known(endpoint string) bool {
	for _, h := range s.policy().Webhooks() {
		if h.Name == endpoint {
			return true
		}
	}
	return false
}
