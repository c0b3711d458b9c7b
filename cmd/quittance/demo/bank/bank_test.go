package bank

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var order = Order{Reference: "INV-9", Payee: "ACME Tools", Amount: 420000, Currency: "USD"}

// open makes a bank on a ledger file and a server in front of it.
func open(t *testing.T, path string, how Behaviour) (b *Bank, url string) {
	t.Helper()
	b = newBank(t, path, how, io.Discard)
	server := httptest.NewServer(b.Handler())
	t.Cleanup(server.Close)
	return b, server.URL
}

func newBank(t *testing.T, path string, how Behaviour, log io.Writer) *Bank {
	t.Helper()
	l, err := OpenLedger(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return New(l, how, log)
}

func ledgerFile(t *testing.T) string { return filepath.Join(t.TempDir(), "bank.jsonl") }

func pay(t *testing.T, url, key string, o Order) Payment {
	t.Helper()
	p, err := Pay(t.Context(), url, key, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ids are the payments on the disk; a look-up must say the same.
func ids(t *testing.T, url, path string) (found []string) {
	t.Helper()
	onDisk, err := ReadLedger(path, order.Reference)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := Find(t.Context(), url, order.Reference)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(seen, onDisk, func(a, b Payment) bool { return a.ID == b.ID && a.Order == b.Order && a.Final == b.Final }) {
		t.Errorf("the look-up shows %v, the file %v", seen, onDisk)
	}
	for _, p := range onDisk {
		found = append(found, p.ID)
	}
	return found
}

func want(t *testing.T, got []string, wanted ...string) {
	t.Helper()
	if !slices.Equal(got, wanted) {
		t.Errorf("the ledger holds %v, want %v", got, wanted)
	}
}

func TestAKeyIsHonouredOrIgnored(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		keys          Keys
		first, second string // the keys sent
		want          []string
	}{
		{Honour, "k", "k", []string{"pay_1"}},
		{Honour, "k", "other", []string{"pay_1", "pay_2"}},
		{Honour, "", "", []string{"pay_1", "pay_2"}},
		{Ignore, "k", "k", []string{"pay_1", "pay_2"}},
	} {
		t.Run(string(c.keys)+"/"+c.first+c.second, func(t *testing.T) {
			t.Parallel()
			path := ledgerFile(t)
			_, url := open(t, path, Behaviour{Keys: c.keys})
			pay(t, url, c.first, order)
			last := pay(t, url, c.second, order)
			want(t, ids(t, url, path), c.want...)
			if last.ID != c.want[len(c.want)-1] || last.Order != order || !last.Final || last.Status != Paid {
				t.Errorf("the second answer is %+v", last)
			}
		})
	}
}

func TestAKeyHoldsForOneOrder(t *testing.T) {
	t.Parallel()
	path := ledgerFile(t)
	_, url := open(t, path, Behaviour{})
	pay(t, url, "k", order)
	other := order
	other.Amount++
	_, err := Pay(t.Context(), url, "k", other)
	refusal, ok := errors.AsType[*Refusal](err)
	if !ok || refusal.Code != "idempotency_key_reused" {
		t.Errorf("another order under the same key: %v", err)
	}
	want(t, ids(t, url, path), "pay_1")
}

func TestAReferenceFindsItsOwnPayments(t *testing.T) {
	t.Parallel()
	path := ledgerFile(t)
	_, url := open(t, path, Behaviour{})
	other := order
	other.Reference = "INV-9 & co"
	pay(t, url, "", other)
	pay(t, url, "", order)
	want(t, ids(t, url, path), "pay_2")
	found, err := Find(t.Context(), url, other.Reference)
	if err != nil || len(found) != 1 || found[0].ID != "pay_1" {
		t.Errorf("%v %v", found, err)
	}
}

// The sender of a lost answer waits until it gives up; the order is booked all the
// same, and the next one is answered.
func TestALostAnswerIsBooked(t *testing.T) {
	t.Parallel()
	path := ledgerFile(t)
	log, lines := io.Pipe()
	b := newBank(t, path, Behaviour{Keys: Ignore, LoseAnswers: 1}, lines)
	server := httptest.NewServer(b.Handler())
	t.Cleanup(server.Close)

	ctx, giveUp := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() {
		_, err := Pay(ctx, server.URL, "", order)
		answered <- err
	}()
	line := make([]byte, 64)
	n, err := log.Read(line)
	if err != nil || string(line[:n]) != "booked pay_1 for INV-9\n" {
		t.Fatalf("the bank says %q, %v", line[:n], err)
	}
	want(t, ids(t, server.URL, path), "pay_1") // before the sender gives up
	select {
	case err := <-answered:
		t.Fatalf("the answer was not lost: %v", err)
	default:
	}
	giveUp()
	if err := <-answered; !errors.Is(err, context.Canceled) {
		t.Errorf("the sender saw %v", err)
	}
	go func() { _, _ = io.Copy(io.Discard, log) }()
	if p := pay(t, server.URL, "", order); p.ID != "pay_2" {
		t.Errorf("the next order became %s", p.ID)
	}
}

// handle calls the API without a network, so that the time can be a false one.
func handle(b *Bank, method, target, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	b.Handler().ServeHTTP(w, httptest.NewRequest(method, target, strings.NewReader(body)))
	return w
}

func TestASlowBankBooksAfterItsSenderHasGone(t *testing.T) {
	t.Parallel()
	path := ledgerFile(t)
	synctest.Test(t, func(t *testing.T) {
		b := newBank(t, path, Behaviour{Slow: time.Minute}, io.Discard)
		ctx, gone := context.WithCancel(t.Context())
		gone()
		body, _ := json.Marshal(order)
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/payments", strings.NewReader(string(body)))
		go b.Handler().ServeHTTP(httptest.NewRecorder(), r)
		booked := func() int {
			synctest.Wait()
			found, err := ReadLedger(path, order.Reference)
			if err != nil {
				t.Fatal(err)
			}
			return len(found)
		}
		time.Sleep(time.Minute - 1)
		if n := booked(); n != 0 {
			t.Errorf("%d payments before the minute is over", n)
		}
		time.Sleep(time.Nanosecond)
		if n := booked(); n != 1 {
			t.Errorf("%d payments after the minute", n)
		}
	})
}

func TestAPaymentLandsThenSettles(t *testing.T) {
	t.Parallel()
	path := ledgerFile(t)
	synctest.Test(t, func(t *testing.T) {
		b := newBank(t, path, Behaviour{Lands: time.Minute, Settles: time.Hour}, io.Discard)
		body, _ := json.Marshal(order)
		if w := handle(b, http.MethodPost, "/v1/payments", string(body)); w.Code != http.StatusCreated {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		for _, step := range []struct {
			after time.Duration
			want  []string
		}{
			{time.Minute - 1, nil},
			{1, []string{Processing}},
			{time.Hour - 1, []string{Processing}},
			{1, []string{Paid}},
		} {
			time.Sleep(step.after)
			var found Found
			w := handle(b, http.MethodGet, "/v1/payments?reference=INV-9", "")
			if err := json.Unmarshal(w.Body.Bytes(), &found); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range found.Payments {
				got = append(got, p.Status)
				if p.Final != (p.Status == Paid) {
					t.Errorf("%+v", p)
				}
			}
			if !slices.Equal(got, step.want) {
				t.Errorf("after %v more: %v, want %v", step.after, got, step.want)
			}
		}
	})
}

// Where large payments take their time, small ones do not.
func TestALargePaymentSettlesLater(t *testing.T) {
	t.Parallel()
	path := ledgerFile(t)
	_, url := open(t, path, Behaviour{Settles: time.Hour, Large: order.Amount})
	small := order
	small.Amount--
	if p := pay(t, url, "small", small); !p.Final || p.Status != Paid {
		t.Errorf("the small one: %+v", p)
	}
	if p := pay(t, url, "large", order); p.Final || p.Status != Processing {
		t.Errorf("the large one: %+v", p)
	}
}

// What a look-up lies about, the ledger has as it is.
func TestALookUpLiesAboutTheBooks(t *testing.T) {
	t.Parallel()
	truth := Payment{ID: "pay_1", Order: order, Status: Processing}
	dearer, done := truth, truth
	dearer.Amount++
	done.Status, done.Final = Paid, true
	for fault, want := range map[Fault]struct{ shown, booked []Payment }{
		NoFault:  {[]Payment{truth}, []Payment{truth}},
		Invent:   {[]Payment{truth}, nil},
		Deny:     {nil, []Payment{truth}},
		Misstate: {[]Payment{dearer}, []Payment{truth}},
		Hasten:   {[]Payment{done}, []Payment{truth}},
	} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			path := ledgerFile(t)
			_, url := open(t, path, Behaviour{Fault: fault, Settles: time.Hour})
			pay(t, url, "", order)
			shown, err := Find(t.Context(), url, order.Reference)
			if err != nil {
				t.Fatal(err)
			}
			booked, err := ReadLedger(path, order.Reference)
			if err != nil {
				t.Fatal(err)
			}
			same := func(a, b Payment) bool { a.BookedAt, b.BookedAt = time.Time{}, time.Time{}; return a == b }
			if !slices.EqualFunc(shown, want.shown, same) || !slices.EqualFunc(booked, want.booked, same) {
				t.Errorf("shown %v, booked %v", shown, booked)
			}
		})
	}
}

func TestEachFaultIsOne(t *testing.T) {
	t.Parallel()
	for fault, wanted := range map[Fault][]string{
		NoFault: {"pay_1", "pay_2"},
		Double:  {"pay_1", "pay_2", "pay_3", "pay_4"},
		Forget:  nil,
		Merge:   {"pay_1"},
	} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			path := ledgerFile(t)
			_, url := open(t, path, Behaviour{Keys: Ignore, Fault: fault})
			pay(t, url, "", order)
			pay(t, url, "", order)
			want(t, ids(t, url, path), wanted...)
		})
	}
}

func TestWhatIsNoOrderIsRefused(t *testing.T) {
	t.Parallel()
	path := ledgerFile(t)
	b, url := open(t, path, Behaviour{})
	for name, body := range map[string]string{
		"not JSON":        `{"reference":"SECRET`,
		"no reference":    `{"payee":"ACME","amount":1,"currency":"USD"}`,
		"no payee":        `{"reference":"SECRET","amount":1,"currency":"USD"}`,
		"no amount":       `{"reference":"SECRET","payee":"ACME","currency":"USD"}`,
		"negative amount": `{"reference":"SECRET","payee":"ACME","amount":-1,"currency":"USD"}`,
		"fraction":        `{"reference":"SECRET","payee":"ACME","amount":0.5,"currency":"USD"}`,
		"no currency":     `{"reference":"SECRET","payee":"ACME","amount":1}`,
		"unknown field":   `{"reference":"SECRET","payee":"ACME","amount":1,"currency":"USD","x":1}`,
	} {
		w := handle(b, http.MethodPost, "/v1/payments", body)
		if w.Code != http.StatusUnprocessableEntity || strings.Contains(w.Body.String(), "SECRET") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	if w := handle(b, http.MethodGet, "/v1/payments", ""); w.Code != http.StatusBadRequest {
		t.Errorf("a look-up without a reference: %d %s", w.Code, w.Body)
	}
	want(t, ids(t, url, path))
	text, err := os.ReadFile(path)
	if err != nil || len(text) != 0 {
		t.Errorf("the ledger holds %d bytes, %v", len(text), err)
	}
}
