// Package simulator is a bank that goes wrong in every way that a downstream was seen to:
// a real server, for tests of whatever asks one.
package simulator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Tokens and the world that each opens.
const (
	LiveToken    = "tok-live-zz91"
	SandboxToken = "tok-sandbox-zz91"
)

// Canary is the reference of a payment that is always in the live world.
const Canary = "CANARY-1"

// pageSize is how many payments a page shows.
const pageSize = 100

// Payment is one entry of the ledger.
type Payment struct {
	ID        string    `json:"id"`
	Reference string    `json:"reference"`
	Amount    int64     `json:"amount"` // in the smallest unit
	Currency  string    `json:"currency"`
	To        string    `json:"to"`
	Status    string    `json:"status"` // "processing", "booked", "canceled"
	Key       string    `json:"idempotency_key,omitempty"`
	LandedAt  time.Time `json:"landed_at"`
}

// Fault is how a question is answered instead of truly.
type Fault string

// Faults.
const (
	None         Fault = ""
	Unauthorized Fault = "401"
	Forbidden    Fault = "403"
	NotFoundHTML Fault = "404 HTML"
	NotFoundJSON Fault = "404 JSON"
	Gone         Fault = "410"
	TooMany      Fault = "429"         // Retry-After: 30
	BadGateway   Fault = "502"         // a page of 3 MB with a script in it
	SlowLoris    Fault = "slow loris"  // a byte now and then, without end
	Redirect     Fault = "redirect"    // to an address of the private network
	Huge         Fault = "1 GB"        // valid JSON without end
	Truncated    Fault = "truncated"   // the connection breaks inside the body
	NotJSON      Fault = "200 HTML"    // a login page
	Hangup       Fault = "hang up"     // no answer at all
	WrongShape   Fault = "wrong shape" // JSON that is something else
)

// Faults are all but None.
var Faults = []Fault{Unauthorized, Forbidden, NotFoundHTML, NotFoundJSON, Gone, TooMany, BadGateway, SlowLoris, Redirect, Huge, Truncated, NotJSON, Hangup, WrongShape}

// Behaviour is what the bank does from now on.
type Behaviour struct {
	// Of orders.
	LoseAnswer bool          // the order lands, and its answer never comes
	LandsAfter time.Duration // answered at once, in the ledger later
	Twice      bool          // lands two times
	Short      int64         // lands with so much less than ordered
	Processing bool          // lands, but not finally

	// Of questions.
	Lag      time.Duration // what landed shows only after it
	Fault    Fault
	FailPage int // this page (from 1) answers 500, once
	// PerSecond, where it is not 0, answers 429 to questions past so many in one second.
	PerSecond int
	Takes     time.Duration // how long an answer takes
}

// Server is a running bank. Safe for concurrent use.
type Server struct {
	URL string

	server *http.Server
	done   chan struct{}

	mu        sync.Mutex
	now       func() time.Time
	behaviour Behaviour
	ledger    []Payment // of the live world; the sandbox has none
	stats     Stats
	asking    map[string]int // questions in progress, by reference
	window    []time.Time    // when the questions of the last second came
}

// Stats is what the bank noticed of those who ask.
type Stats struct {
	Asked     map[string]int // by reference, those answered with 429 left out
	Throttled int
	AtOnce    int  // most questions in progress at one time
	Doubled   bool // two about one reference at one time
}

// Start opens a bank on a free port of the loopback address. now is its clock.
func Start(now func() time.Time) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("couldn't start the simulator: %w", err)
	}
	s := &Server{URL: "http://" + l.Addr().String(), now: now, done: make(chan struct{}), asking: map[string]int{},
		stats: Stats{Asked: map[string]int{}}}
	s.ledger = []Payment{{ID: "tr_canary", Reference: Canary, Amount: 1, Currency: "USD", To: "us", Status: "booked"}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/payments", s.order)
	mux.HandleFunc("GET /v1/payments", s.list)
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(s.done)
		_ = s.server.Serve(l) // ends with Close
	}()
	return s, nil
}

// Close stops the bank, answers in progress included.
func (s *Server) Close() {
	_ = s.server.Close()
	<-s.done
}

// Tell changes the behaviour.
func (s *Server) Tell(b Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behaviour = b
}

// Put adds payments to the ledger, as somebody else's orders do.
func (s *Server) Put(list ...Payment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger = append(s.ledger, list...)
}

// Turn gives a payment another status.
func (s *Server) Turn(id, status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.ledger {
		if s.ledger[i].ID == id {
			s.ledger[i].Status = status
		}
	}
}

// Ledger is the truth: everything that landed by now for a reference.
func (s *Server) Ledger(reference string) (list []Payment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.ledger {
		if p.Reference == reference && !p.LandedAt.After(s.now()) {
			list = append(list, p)
		}
	}
	return list
}

// Stats is a copy of what was noticed so far.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.stats
	out.Asked = map[string]int{}
	for reference, n := range s.stats.Asked {
		out.Asked[reference] = n
	}
	return out
}

// ErrLost is returned by [Server.Order] where the order may have landed and no answer came.
var ErrLost = errors.New("no answer came")

// Order is what an agent does: it sends an order over HTTP and waits for the answer.
func (s *Server) Order(ctx context.Context, p Payment) error {
	body := fmt.Sprintf(`{"reference":%q,"amount":%d,"currency":%q,"to":%q}`, p.Reference, p.Amount, p.Currency, p.To)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/payments", strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("couldn't make the order: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+LiveToken)
	r.Header.Set("Idempotency-Key", p.Key)
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return ErrLost
	}
	defer got.Body.Close()
	if got.StatusCode != http.StatusCreated {
		return fmt.Errorf("the bank answered %d", got.StatusCode)
	}
	return nil
}
