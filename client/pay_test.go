package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"quittance/client"
	"quittance/client/x402"
)

// till is a gateway that answers what a test says, and notes what it was sent.
type till struct {
	*httptest.Server
	mu      sync.Mutex
	quote   string
	answers []func(w http.ResponseWriter, r *http.Request) // to paid requests, in order; the last stays
	unpaid  int
	paid    []http.Header
}

func newTill(t *testing.T, answers ...func(http.ResponseWriter, *http.Request)) *till {
	t.Helper()
	g := &till{answers: answers, quote: "q-88"}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		g.mu.Lock()
		defer g.mu.Unlock()
		if r.Header.Get(x402.SignatureHeader) == "" {
			g.unpaid++
			g.ask(w, "")
			return
		}
		g.paid = append(g.paid, r.Header.Clone())
		answer := g.answers[0]
		if len(g.answers) > 1 {
			g.answers = g.answers[1:]
		}
		answer(w, r)
	}))
	t.Cleanup(g.Close)
	return g
}

var price = x402.Requirements{Scheme: "exact", Network: "eip155:31337", Asset: "0xa", Amount: "12500000", PayTo: "shop-4"}

func (g *till) ask(w http.ResponseWriter, code string) {
	header, _ := x402.Encode(x402.Required{
		X402Version: 2, Accepts: []x402.Requirements{price}, Extensions: map[string]json.RawMessage{x402.PaymentIdentifier: x402.OfferIdentifier(false)},
	})
	w.Header().Set(x402.RequiredHeader, header)
	w.Header().Set(x402.QuoteHeader, g.quote)
	refuse(w, 402, code)
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"code":%q,"title":"t","status":%d,"retryable":true,"final":false}`, code, status)
}

func settled(body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(x402.OutcomeHeader, x402.Settled)
		w.Header().Set(x402.ReceiptHeader, "https://q.example/r/t")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, body)
	}
}

func refusing(status int, code string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { refuse(w, status, code) }
}

func breaking(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }

// signer counts what it signs.
type signer struct {
	mu     sync.Mutex
	signed int
	until  time.Time
}

func (s *signer) sign(_ context.Context, offered x402.Required) (x402.Requirements, json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signed++
	until := s.until
	if until.IsZero() {
		until = time.Now().Add(time.Hour)
	}
	raw, err := json.Marshal(x402.Exact{Signature: "0x", Authorization: x402.Authorization{
		From: "w-1", To: "shop-4", Value: price.Amount, ValidBefore: strconv.FormatInt(until.Unix(), 10), Nonce: fmt.Sprintf("0x%064x", s.signed),
	}})
	return offered.Accepts[0], raw, err
}

func buy(t *testing.T, p *client.Payer, g *till, key, body string) (*client.Paid, error) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, g.URL+"/buy", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return p.Pay(t.Context(), key, req)
}

// What is sent again after lost answers, waits and a restart of the program is the same.
func TestAPayerSendsTheSameUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	g := newTill(t, breaking, refusing(503, "unavailable"), refusing(409, client.CodePaymentInFlight), breaking)
	dir, s := t.TempDir(), &signer{}
	p := client.NewPayer(dir, s.sign, client.PayPatience(400*time.Millisecond))
	_, err := buy(t, p, g, "order-8", `{"sku":2}`)
	if !errors.Is(err, client.ErrPaymentOpen) {
		t.Fatalf("an answer that is not there: %v", err)
	}
	g.mu.Lock()
	g.answers = []func(http.ResponseWriter, *http.Request){settled("the page"), refusing(500, "")}
	g.mu.Unlock()
	for i := range 2 { // a new process, and then the stored answer
		paid, err := buy(t, client.NewPayer(dir, s.sign), g, "order-8", `{"sku":2}`)
		if err != nil || string(paid.Body) != "the page" || paid.Status != 201 || paid.Outcome != x402.Settled || paid.Replayed != (i == 1) || paid.Receipt == "" {
			t.Fatalf("%+v, %v", paid, err)
		}
	}
	if s.signed != 1 || g.unpaid != 1 || len(g.paid) < 4 {
		t.Errorf("%d signed, %d asked, %d sent", s.signed, g.unpaid, len(g.paid))
	}
	for _, h := range g.paid {
		for _, name := range []string{x402.PaymentIDHeader, x402.SignatureHeader, x402.QuoteHeader} {
			if h.Get(name) == "" || h.Get(name) != g.paid[0].Get(name) {
				t.Errorf("%s was %q and is %q", name, g.paid[0].Get(name), h.Get(name))
			}
		}
	}
	sent, err := x402.Decode[x402.Payload](g.paid[0].Get(x402.SignatureHeader))
	if err != nil || sent.Identifier() != g.paid[0].Get(x402.PaymentIDHeader) {
		t.Errorf("the payload carries the id %q: %v", sent.Identifier(), err)
	}
}

// What cannot be stored is not sent: neither a request nor a signature.
func TestAPayerSendsNothingThatItCouldNotStore(t *testing.T) {
	t.Parallel()
	g := newTill(t, settled(""))
	s := &signer{}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := buy(t, client.NewPayer(filepath.Join(file, "x"), s.sign), g, "k", ""); !errors.Is(err, client.ErrNotStored) {
		t.Errorf("stored in a file as a folder: %v", err)
	}
	// The folder goes away between the intent and the signature.
	dir := filepath.Join(t.TempDir(), "intents")
	vanish := func(ctx context.Context, offered x402.Required) (x402.Requirements, json.RawMessage, error) {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return s.sign(ctx, offered)
	}
	if _, err := buy(t, client.NewPayer(dir, vanish), g, "k", ""); !errors.Is(err, client.ErrNotStored) {
		t.Errorf("an authorization that is not stored: %v", err)
	}
	if len(g.paid) != 0 || g.unpaid != 1 {
		t.Errorf("%d paid and %d unpaid requests were sent", len(g.paid), g.unpaid)
	}
}

func TestAPayerSignsOncePerQuote(t *testing.T) {
	t.Parallel()
	g := newTill(t, settled("1"))
	s := &signer{}
	p := client.NewPayer(t.TempDir(), s.sign)
	if _, err := buy(t, p, g, "order-8", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := buy(t, p, g, "order-9", ""); !errors.Is(err, client.ErrQuoteSigned) {
		t.Errorf("a second purchase for the quote: %v", err)
	}
	if _, err := buy(t, p, g, "order-8", "another body"); !errors.Is(err, client.ErrOtherPurchase) {
		t.Errorf("the key for another request: %v", err)
	}
	if s.signed != 1 || len(g.paid) != 1 {
		t.Errorf("%d signed, %d sent", s.signed, len(g.paid))
	}
}

// A 402 in answer to a payment is signed for again only where the gateway says that nothing
// before can be taken, and the authorization itself says so too.
func TestAPayerSignsAgainOnlyWhenTheOldOneIsDead(t *testing.T) {
	t.Parallel()
	var g *till
	again := func(w http.ResponseWriter, _ *http.Request) { g.ask(w, client.CodeSignAgain) }
	g = newTill(t, again, again, settled("the page"))
	s := &signer{until: time.Now().Add(2 * time.Second)}
	paid, err := buy(t, client.NewPayer(t.TempDir(), s.sign), g, "k", "")
	if err != nil || s.signed != 2 || string(paid.Body) != "the page" {
		t.Fatalf("signed %d times: %+v, %v", s.signed, paid, err)
	}
	if time.Now().Before(s.until.Truncate(time.Second)) {
		t.Error("signed again while the first could be taken")
	}
	a, b := g.paid[0], g.paid[len(g.paid)-1]
	if a.Get(x402.PaymentIDHeader) != b.Get(x402.PaymentIDHeader) || a.Get(x402.QuoteHeader) != b.Get(x402.QuoteHeader) || a.Get(x402.SignatureHeader) == b.Get(x402.SignatureHeader) {
		t.Errorf("sent %v and then %v", a, b)
	}

	g = newTill(t, func(w http.ResponseWriter, _ *http.Request) { g.ask(w, "") })
	s = &signer{until: time.Now().Add(-time.Second)}
	if _, err := buy(t, client.NewPayer(t.TempDir(), s.sign), g, "k", ""); !errors.Is(err, client.ErrAskedAgain) || s.signed != 1 {
		t.Errorf("a bare 402: signed %d times, %v", s.signed, err)
	}

	g = newTill(t, func(w http.ResponseWriter, _ *http.Request) { g.ask(w, client.CodeSignAgain) })
	s = &signer{until: time.Now().Add(-time.Second)}
	if _, err := buy(t, client.NewPayer(t.TempDir(), s.sign), g, "k", ""); !errors.Is(err, client.ErrAskedAgain) || s.signed != 3 {
		t.Errorf("a gateway that never has enough: signed %d times, %v", s.signed, err)
	}
}

// What other refusals say is for the program: nothing is signed or sent again.
func TestAPayerGivesFinalRefusals(t *testing.T) {
	t.Parallel()
	for code, status := range map[string]int{client.CodePaymentConflict: 409, client.CodePaymentSpent: 410, client.CodeInvalid: 422} {
		g := newTill(t, refusing(status, code))
		s := &signer{}
		_, err := buy(t, client.NewPayer(t.TempDir(), s.sign), g, "k", "")
		if p, ok := errors.AsType[*client.Problem](err); !ok || p.Code != code || p.Status != status || s.signed != 1 || len(g.paid) != 1 {
			t.Errorf("%s: %v; %d signed, %d sent", code, err, s.signed, len(g.paid))
		}
	}
	// A page of something between us is not the gateway's answer.
	g := newTill(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "log in to the network") }, settled("the page"))
	paid, err := buy(t, client.NewPayer(t.TempDir(), (&signer{}).sign), g, "k", "")
	if err != nil || string(paid.Body) != "the page" {
		t.Errorf("%+v, %v", paid, err)
	}
}

// Of many that start the same purchase at once, all send what one of them signed.
func TestPayersTogetherSendOneAuthorization(t *testing.T) {
	t.Parallel()
	g := newTill(t, settled("the page"))
	dir, s := t.TempDir(), &signer{}
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if paid, err := buy(t, client.NewPayer(dir, s.sign), g, "k", ""); err != nil || string(paid.Body) != "the page" {
				t.Errorf("%+v, %v", paid, err)
			}
		})
	}
	all.Wait()
	for _, h := range g.paid {
		if h.Get(x402.SignatureHeader) != g.paid[0].Get(x402.SignatureHeader) || h.Get(x402.PaymentIDHeader) != g.paid[0].Get(x402.PaymentIDHeader) {
			t.Fatal("two authorizations were sent for one purchase")
		}
	}
}
