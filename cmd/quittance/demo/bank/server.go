package bank

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Bank books orders in a ledger. Safe for concurrent use.
type Bank struct {
	log io.Writer

	mu        sync.Mutex
	ledger    *Ledger
	behaviour Behaviour
	invented  []entry // shown and not booked, by a bank that lies
}

// New makes a bank that owns a ledger. It writes one line to log for each order it has
// booked, once the order is on the disk: "booked pay_1 for INV-9".
func New(l *Ledger, b Behaviour, log io.Writer) *Bank {
	bank := &Bank{log: log, ledger: l}
	bank.Tell(b)
	return bank
}

// Tell changes how orders are treated from now on.
func (b *Bank) Tell(how Behaviour) {
	how.Keys, how.Fault = cmp.Or(how.Keys, Honour), cmp.Or(how.Fault, NoFault)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.behaviour = how
}

// Serve answers on l until ctx ends. Answers that are being withheld are dropped then.
func (b *Bank) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{Handler: b.Handler(), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("couldn't serve the bank: %w", err)
	}
	return nil
}

// Handler is the bank's API: POST /v1/payments with an Idempotency-Key, and
// GET /v1/payments?reference=.
func (b *Bank) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/payments", b.pay)
	mux.HandleFunc("GET /v1/payments", b.find)
	return mux
}

func (b *Bank) find(w http.ResponseWriter, r *http.Request) {
	reference := r.URL.Query().Get("reference")
	if reference == "" {
		refuse(w, http.StatusBadRequest, "reference_missing", "Say which payments: ?reference=")
		return
	}
	b.mu.Lock()
	found := b.behaviour.Fault.shown(landed(slices.Concat(b.ledger.entries, b.invented), reference, time.Now()))
	b.mu.Unlock()
	answer(w, http.StatusOK, Found{found})
}

// Found answers a look-up: every payment for the reference, the oldest first.
type Found struct {
	Payments []Payment `json:"payments"`
}

func (b *Bank) pay(w http.ResponseWriter, r *http.Request) {
	order, problem := readOrder(http.MaxBytesReader(w, r.Body, 64<<10))
	if problem != "" {
		refuse(w, http.StatusUnprocessableEntity, "order_invalid", problem)
		return
	}
	b.mu.Lock()
	how := b.behaviour
	lost := how.LoseAnswers > 0
	if lost {
		b.behaviour.LoseAnswers--
	}
	b.mu.Unlock()

	// An order that has arrived is booked, also when its sender is gone by then.
	time.Sleep(how.Slow)
	booked, status, err := b.book(order, r.Header.Get("Idempotency-Key"), how)
	switch {
	case errors.Is(err, errKeyReused):
		refuse(w, http.StatusUnprocessableEntity, "idempotency_key_reused", "This key belongs to another order.")
		return
	case err != nil:
		refuse(w, http.StatusInternalServerError, "ledger_failed", "The order may or may not be booked.")
		return
	}
	if lost {
		<-r.Context().Done()
		return
	}
	answer(w, status, booked)
}

// errKeyReused: the key was used for another order.
var errKeyReused = errors.New("idempotency key reused")

// book puts an order into the ledger: 201, or 200 when it was there already.
func (b *Bank) book(o Order, key string, how Behaviour) (Payment, int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.ledger.entries {
		switch {
		case how.Fault == Merge && e.Reference == o.Reference:
			b.note(e)
			return e.payment(time.Now()), http.StatusCreated, nil
		case how.Keys != Honour || key == "" || e.Key != key:
		case e.Order != o:
			return Payment{}, 0, errKeyReused
		default:
			return e.payment(time.Now()), http.StatusOK, nil
		}
	}
	e := b.entry(o, key, how)
	if how.Fault == Forget || how.Fault == Invent {
		if how.Fault == Invent {
			b.invented = append(b.invented, e)
		}
		b.note(e)
		return e.payment(time.Now()), http.StatusCreated, nil
	}
	if err := b.ledger.add(e); err != nil {
		return Payment{}, 0, err
	}
	if how.Fault == Double {
		if err := b.ledger.add(b.entry(o, key, how)); err != nil {
			return Payment{}, 0, err
		}
	}
	b.note(e)
	return e.payment(time.Now()), http.StatusCreated, nil
}

func (b *Bank) entry(o Order, key string, how Behaviour) entry {
	now := time.Now().UTC()
	lands := now.Add(how.Lands)
	settles := lands.Add(how.Settles)
	if o.Amount < how.Large {
		settles = lands
	}
	return entry{
		ID: fmt.Sprintf("pay_%d", len(b.ledger.entries)+1), Order: o, Key: key,
		BookedAt: now, LandsAt: lands, SettlesAt: settles,
	}
}

func (b *Bank) note(e entry) { fmt.Fprintf(b.log, "booked %s for %s\n", e.ID, e.Reference) }

// readOrder returns the order, or a sentence that says what is wrong with it.
func readOrder(body io.Reader) (o Order, problem string) {
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return o, "The body is not an order: reference, payee, amount and currency."
	}
	switch {
	case o.Reference == "":
		return o, "reference is missing."
	case o.Payee == "":
		return o, "payee is missing."
	case o.Amount <= 0:
		return o, "amount is not a positive number of the currency's smallest unit."
	case len(o.Currency) != 3:
		return o, "currency is not a code of three letters."
	}
	return o, ""
}

// Refusal is how the bank says no.
type Refusal struct {
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("the bank refused (%d %s): %s", r.Status, r.Code, r.Message)
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	answer(w, status, Refusal{Code: code, Message: message})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
