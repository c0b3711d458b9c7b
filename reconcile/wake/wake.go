// Package wake tells endpoints of a team's own that a run is ready to be taken: by a
// signed request, at least once and always under the same id, until it is answered or
// nobody needs it any more. It decides nothing about runs: whoever is woken claims the
// run like anybody else, and is refused where somebody was quicker.
package wake

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"quittance/ledger"
	"quittance/ledger/system"
	"quittance/ledger/wakes"
	"quittance/reconcile/lookup/outbound"
	"quittance/reconcile/policy"
)

const (
	every    = time.Second // the pace of the loop
	patience = 15 * time.Second
	askedFor = 2 * patience // then whoever sends counts as dead
	atOnce   = 4            // deliveries that one server sends to one endpoint at a time
	batch    = 200
	// mostWait bounds what an endpoint may ask for by Retry-After.
	mostWait = time.Hour
)

// steps are the pauses after a failed attempt: three days and a quarter in all.
var steps = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 5 * time.Hour,
	10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// life is how long a delivery to an endpoint that no policy names any more is kept due.
const life = 4 * 24 * time.Hour

// Service makes deliveries and sends them. Safe for concurrent use, by many servers on one
// database.
type Service struct {
	db     *ledger.DB
	policy func() *policy.Policy
	public string
	log    *slog.Logger

	mu      sync.Mutex
	sending map[string]int            // by endpoint
	clients map[bool]*outbound.Client // by whether private addresses are allowed
	sends   sync.WaitGroup
}

// New makes a service. public is where people and agents reach the server, for the links
// in what is sent; "" makes them relative.
func New(db *ledger.DB, p func() *policy.Policy, public string, log *slog.Logger) *Service {
	s := &Service{db: db, policy: p, public: strings.TrimRight(public, "/"), log: log, sending: map[string]int{}, clients: map[bool]*outbound.Client{}}
	for _, private := range []bool{false, true} {
		s.clients[private] = outbound.New(outbound.Options{AllowPrivate: private, Patience: patience})
	}
	return s
}

// Run makes and sends deliveries until ctx ends, and then gives back what is under way.
func (s *Service) Run(ctx context.Context) {
	defer s.sends.Wait()
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		if err := s.round(ctx); err != nil && ctx.Err() == nil {
			s.log.Error("deliveries failed; they are tried again in a second", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// round makes the deliveries of what became ready and starts those that are due. In a log
// gap that nobody has acknowledged, and in a copy that nothing may leave, it does nothing.
func (s *Service) round(ctx context.Context) error {
	m, err := system.Read(ctx, s.db)
	if err != nil || m.Behind() || !m.Outward {
		return err
	}
	hooks := s.policy().Webhooks()
	for more := true; more; {
		if more, err = s.make(ctx, hooks); err != nil {
			return err
		}
	}
	var names []string
	for _, h := range hooks {
		names = append(names, h.Name)
		if err := s.send(ctx, h); err != nil {
			return err
		}
	}
	return s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error { return wakes.GiveUp(ctx, tx, names, life) })
}

// make turns runs that became ready into a delivery for each endpoint that wants them.
func (s *Service) make(ctx context.Context, hooks []*policy.Webhook) (more bool, err error) {
	err = s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		list, err := wakes.Take(ctx, tx, batch)
		more = len(list) == batch
		if err != nil || len(list) == 0 {
			return err
		}
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		for _, r := range list {
			for _, h := range hooks {
				if !r.Still || !h.Wants(r.Account, r.Agent) {
					continue
				}
				body, err := s.body(r)
				if err != nil {
					return err
				}
				d := wakes.Delivery{ID: uuid.Must(uuid.NewV7()).String(), Endpoint: h.Name, Run: r.Run, ReadyAt: r.ReadyAt, Body: body, MadeAt: ledger.At(now)}
				if err := wakes.Add(ctx, tx, d); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return more, err
}

// send starts what is due for an endpoint, as much as it is sent at a time.
func (s *Service) send(ctx context.Context, h *policy.Webhook) error {
	s.mu.Lock()
	free := atOnce - s.sending[h.Name]
	s.mu.Unlock()
	if free <= 0 {
		return nil
	}
	by := uuid.NewString()
	var list []wakes.Delivery
	err := s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		if err := wakes.Overtake(ctx, tx, h.Name); err != nil {
			return err
		}
		var err error
		list, err = wakes.Ask(ctx, tx, h.Name, by, free, askedFor)
		return err
	})
	if err != nil {
		return err
	}
	for _, d := range list {
		s.count(h.Name, 1)
		s.sends.Go(func() {
			defer s.count(h.Name, -1)
			s.deliver(ctx, h, d, by)
		})
	}
	return nil
}

func (s *Service) count(endpoint string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sending[endpoint] += n
}

// deliver sends one delivery and records what became of it.
func (s *Service) deliver(ctx context.Context, h *policy.Webhook, d wakes.Delivery, by string) {
	began := time.Now()
	got, err := s.post(ctx, h, d)
	late := context.WithoutCancel(ctx)
	if ctx.Err() != nil && err != nil {
		// What a stopping server did not hear is not the endpoint's silence.
		if err := s.db.InTx(late, func(ctx context.Context, tx *ledger.Tx) error { return wakes.GiveBack(ctx, tx, d.ID, by) }); err != nil {
			s.log.Warn("a delivery could not be given back; it is sent again in half a minute", "delivery", d.ID, "error", err)
		}
		return
	}
	a := wakes.Attempt{Seconds: time.Since(began).Seconds(), Status: got.Status}
	state, wait := judge(d, got, err, &a)
	err = s.db.InTx(late, func(ctx context.Context, tx *ledger.Tx) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		a.At = ledger.At(now)
		var next time.Time
		if state == stateDue {
			next = now.Add(wait)
		}
		_, err = wakes.Answered(ctx, tx, d, by, a, state, next)
		return err
	})
	if err != nil {
		s.log.Error("a delivery could not be recorded; it is sent again", "delivery", d.ID, "error", err)
	}
}

// The states of a delivery.
const (
	stateDue       = "due"
	stateDelivered = "delivered"
	stateGivenUp   = "given_up"
)

// judge says where an answer leaves a delivery and, where it is sent again, after how long.
func judge(d wakes.Delivery, got outbound.Response, err error, a *wakes.Attempt) (state string, wait time.Duration) {
	switch {
	case got.Status >= 200 && got.Status < 300:
		// Also where the answer's body broke off: it was received.
		return stateDelivered, 0
	case got.Status == http.StatusGone:
		a.Problem = "the endpoint is gone"
		return stateGivenUp, 0
	case err != nil:
		a.Problem = err.Error()
	case got.Status >= 300 && got.Status < 400:
		a.Problem = "it redirects, which is not followed"
	default:
		a.Problem = http.StatusText(got.Status)
	}
	if d.Step >= len(steps) {
		return stateGivenUp, 0
	}
	return stateDue, max(steps[d.Step], retryAfter(got.Header))
}
