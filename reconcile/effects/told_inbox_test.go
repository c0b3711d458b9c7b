package effects_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"quittance/ledger/inbox"
	"quittance/ledger/lookups"
	"quittance/reconcile/effects"
	"quittance/reconcile/lookup"
	"quittance/reconcile/policy"
	"quittance/reconcile/policy/read"
)

const inboxPolicy = `
release: {hold: 0s, not_taken_hold: 0s}
tools:
  send_payment:
    summary: "Pay {amount} {currency} to {vendor} for {invoice}"
    business_key: "{vendor}/{invoice}"
    amount: {value: amount, currency: currency, unit: major}
    deadline: 60s
    lookup:
      webhook_inbox: {name: bank, signature: standard_webhooks, secrets: ["${env:INBOX_SECRET}"]}
      found: body.events.filter(e, has(e.data.reference) && e.data.reference == effect.business_key || has(e.data.key) && e.data.key == effect.vendor_key)
      match: same_amount(hit.data.amount, "major") && hit.data.currency == effect.currency
      final: hit.type == "payment.booked"
      ours: has(hit.data.key) && hit.data.key == effect.vendor_key
      never: hit.type == "payment.failed"
      reference: hit.data.id
      result: '{"payment_id": hit.data.id}'
`

const inboxSecret = "secret-of-the-bank-1"

// newInbox is a world whose bank only tells.
func newInbox(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, fastRelease)
	w.Engine = w.inboxEngine()
	return w
}

func (w *world) inboxEngine() *effects.Engine {
	w.t.Helper()
	in := read.Surroundings{Getenv: func(string) (string, bool) {
		return "whsec_" + base64.StdEncoding.EncodeToString([]byte(inboxSecret)), true
	}}
	p, mistakes := policy.LoadIn(in, "quittance.yaml", []byte(inboxPolicy))
	if p == nil {
		w.t.Fatal(mistakes)
	}
	e, err := effects.New(w.t.Context(), w.db, p, w.hub, slog.New(slog.DiscardHandler))
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// signed are the headers of an event as the bank sends it.
func signed(id, body string, at time.Time) http.Header {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(inboxSecret))
	mac.Write([]byte(id + "." + stamp + "." + body))
	h := http.Header{}
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", stamp)
	h.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return h
}

// arrive lets an event come, be held against the effects, and be looked at where it is due.
func (w *world) arrive(id, body string) effects.Received {
	w.t.Helper()
	got := w.receive(id, body)
	w.told()
	w.look()
	return got
}

func (w *world) receive(id, body string) effects.Received {
	w.t.Helper()
	got, err := w.Receive(w.t.Context(), "bank", signed(id, body, time.Now()), []byte(body))
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

// event is what the bank says of pay(invoice, amount); more are further members of data.
func event(kind, invoice, amount string, more ...string) string {
	return fmt.Sprintf(`{"type":%q,"data":{"id":"P-%s","reference":%q,"amount":%q,"currency":"USD"%s}}`,
		kind, invoice, acme(invoice), amount, strings.Join(append([]string{""}, more...), ","))
}

const booked, accepted = "payment.booked", "payment.accepted"

func TestAnEventMakesTheLookUpDue(t *testing.T) {
	t.Parallel()
	w := newInbox(t)
	b := w.lost("run", pay("INV-1", "4200.00"))
	other := w.lost("run-2", pay("INV-10", "4200.00"))
	w.look()
	if v := w.looks(b.EffectID); len(v.Looks) != 1 || v.Looks[0].Reason != lookup.NotYet || v.Looks[0].Request != "inbox bank" {
		t.Fatalf("%+v", v)
	}
	w.arrive("evt_1", event(booked, "INV-1", "4200.00"))
	v := w.wantState(b.EffectID, effects.Taken)
	if v.DecidedBy != "look_up" || v.Reference != "P-INV-1" || string(v.Result) != `{"payment_id":"P-INV-1"}` {
		t.Errorf("%+v", v)
	}
	if l := w.looks(b.EffectID).Looks; len(l) != 2 || l[0].Cause != lookups.ByEvent {
		t.Errorf("%+v", l)
	}
	third := w.lost("run-3", pay("INV-100", "1.00"))
	w.look()
	w.arrive("evt_2", `{"type":"payment.booked","data":{"id":"P-3","key":"`+third.VendorKey+`","amount":"1.00","currency":"USD"}}`)
	w.wantState(third.EffectID, effects.Taken)
	w.wantState(other.EffectID, effects.Interrupted)
	if n := len(w.looks(other.EffectID).Looks); n != 1 {
		t.Errorf("an event about INV-1 made INV-10 looked at: %d looks", n)
	}
}

// The event is faster than the worker's death.
func TestAnEventThatCameBeforeTheEffectWasInterrupted(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]func(vendorKey string) string{
		"by business key": func(string) string { return event(booked, "INV-1", "4200.00") },
		"by the vendor's key": func(k string) string {
			return `{"type":"payment.booked","data":{"id":"P-INV-1","key":"` + k + `","amount":4200,"currency":"USD"}}`
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newInbox(t)
			l := w.open("run", "pod-1")
			b := w.proceed(l, "send_payment", pay("INV-1", "4200.00"))
			w.arrive("evt_1", key(b.VendorKey))
			w.wantState(b.EffectID, effects.InFlight)
			if n := w.count(`SELECT count(*) FROM inbox_events WHERE matched_at IS NOT NULL AND examine_at IS NULL`); n != 1 {
				t.Errorf("%d events are matched, want 1", n)
			}
			w.pass(b.EffectID)
			w.die(l)
			w.look()
			w.wantState(b.EffectID, effects.Taken)
		})
	}
}

// An event that comes while somebody looks may be too late for that look: it is asked again.
func TestAnEventDuringALookIsNotLost(t *testing.T) {
	t.Parallel()
	w := newInbox(t)
	b := w.lost("run", pay("INV-1", "4200.00"))
	asked, ok, err := lookups.Ask(t.Context(), w.db, b.EffectID, "01900000-0000-7000-8000-000000000001", time.Minute)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	w.arrive("evt_1", event(booked, "INV-1", "4200.00"))
	w.wantState(b.EffectID, effects.Interrupted)
	// That look ends with nothing, and is next due in some seconds.
	w.exec(`UPDATE lookup_schedule SET asked_at = NULL, asked_by = NULL, asked_until = NULL, step = 1, next_lookup_at = clock_timestamp() + interval '1 hour'
		WHERE asked_by = $1::uuid`, asked.By)
	w.exec(`UPDATE inbox_events SET examine_at = clock_timestamp() WHERE examine_at IS NOT NULL`)
	w.told()
	w.look()
	w.wantState(b.EffectID, effects.Taken)
}

func TestBC101_AnEventThatComesAgainIsOne(t *testing.T) {
	t.Parallel()
	w := newInbox(t)
	b := w.lost("run", pay("INV-1", "4200.00"))
	body := event(booked, "INV-1", "4200.00")
	var wg sync.WaitGroup
	got := make([]effects.Received, 2)
	for i := range got {
		wg.Go(func() {
			var err error
			if got[i], err = w.Receive(t.Context(), "bank", signed("d-1", body, time.Now()), []byte(body)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got[0].Repeats+got[1].Repeats != 1 || got[0].EventID != "d-1" {
		t.Errorf("%+v", got)
	}
	w.told()
	w.look()
	w.wantState(b.EffectID, effects.Taken)
	if got := w.arrive("d-2", body); got.Repeats != 0 {
		t.Errorf("the same content under another id: %+v", got)
	}
	if got := w.arrive("d-1", body); got.Repeats != 2 {
		t.Errorf("again after a week: %+v", got)
	}
	if v := w.wantState(b.EffectID, effects.Taken); len(v.Decisions) != 1 || len(v.Contradictions) != 0 {
		t.Errorf("%+v", v)
	}
	if n := w.count(`SELECT count(*) FROM inbox_events`); n != 2 {
		t.Errorf("%d events, want 2", n)
	}
	if n := w.count(`SELECT repeats FROM inbox_events WHERE event_id = 'd-1'`); n != 2 {
		t.Errorf("d-1 was repeated %d times, want 2", n)
	}
}

func TestEventsOutOfOrder(t *testing.T) {
	t.Parallel()
	w := newInbox(t)
	b := w.lost("run", pay("INV-1", "4200.00"))
	w.receive("evt_2", event(booked, "INV-1", "4200.00"))
	w.arrive("evt_1", event(accepted, "INV-1", "4200.00")) // made before, and late
	if l := w.looks(b.EffectID).Looks; len(l) != 1 || l[0].Reason != lookup.NotFinal {
		t.Errorf("%+v", l)
	}
	w.wantState(b.EffectID, effects.Interrupted)

	settled := w.lost("run-2", pay("INV-2", "10.00"))
	w.arrive("evt_3", event(booked, "INV-2", "10.00"))
	w.wantState(settled.EffectID, effects.Taken)
	w.arrive("evt_4", event(accepted, "INV-2", "10.00"))
	if v := w.wantState(settled.EffectID, effects.Taken); len(v.Contradictions) != 0 {
		t.Errorf("%+v", v.Contradictions)
	}
}

// The first attempt failed, the second paid, and the failure is told half an hour later.
func TestBC099_ALateFailureOfAnEarlierAttemptChangesNothing(t *testing.T) {
	t.Parallel()
	w := newInbox(t)
	b := w.lost("run", pay("INV-8", "10.00"))
	w.arrive("evt_2", event(booked, "INV-8", "10.00"))
	w.wantState(b.EffectID, effects.Taken)
	before := w.effect(b.EffectID).Version
	failure := `{"type":"payment.failed","data":{"id":"P-0","key":"` + b.VendorKey + `","reference":"` + acme("INV-8") + `","amount":"10.00","currency":"USD"}}`
	w.arrive("evt_1", failure)
	v := w.wantState(b.EffectID, effects.Taken)
	if v.Reference != "P-INV-8" || len(v.Contradictions) != 0 || len(v.Decisions) != 1 {
		t.Errorf("%+v", v)
	}
	looks := w.looks(b.EffectID).Looks
	if len(looks) != 2 || len(looks[0].Records) != 2 || !looks[0].Records[1].Never {
		t.Errorf("the failure is not filed: %+v", looks)
	}
	if v.Version == before {
		t.Error("who looked before does not learn that there is something new")
	}
}

// An agent's finish and the bank's event meet at two servers.
func TestBC098_AFinishAndAnEventAtTheSameMoment(t *testing.T) {
	t.Parallel()
	for i, late := range []bool{false, true, false, true} {
		w := newInbox(t)
		l := w.open("run", "pod-1")
		b := w.proceed(l, "send_payment", pay("INV-80", "4200.00"))
		if late {
			w.pass(b.EffectID)
			w.die(l)
		}
		second := w.inboxEngine()
		body := event(booked, "INV-80", "4200.00")
		var wg sync.WaitGroup
		wg.Go(func() {
			w.finish(b, "taken", reference("P-INV-80"), result(`{"payment_id":"P-INV-80"}`))
		})
		wg.Go(func() {
			if _, err := second.Receive(t.Context(), "bank", signed("evt", body, time.Now()), []byte(body)); err != nil {
				t.Error(err)
			}
			if err := second.Told(t.Context()); err != nil {
				t.Error(err)
			}
			if err := second.Look(t.Context()); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		w.told()
		w.look()
		v := w.wantState(b.EffectID, effects.Taken)
		if v.Reference != "P-INV-80" || len(v.Contradictions) != 0 || len(v.Decisions) > 1 {
			t.Errorf("%d: %+v", i, v)
		}
	}
}

func TestEventsThatAreRefused(t *testing.T) {
	t.Parallel()
	w := newInbox(t)
	body, now := event(booked, "INV-1", "4200.00"), time.Now()
	deep := strings.Repeat("[", 127) + strings.Repeat("]", 127)
	var numbers []string
	for i := range 20_001 {
		numbers = append(numbers, strconv.Itoa(i))
	}
	many := "[" + strings.Join(numbers, ",") + "]"
	for name, c := range map[string]struct {
		inbox, body string
		header      http.Header
		code        effects.Code
	}{
		"no such inbox":   {"banks", body, signed("e", body, now), effects.CodeNotFound},
		"not signed":      {"bank", body, http.Header{}, effects.CodeUnsigned},
		"another body":    {"bank", body + " ", signed("e", body, now), effects.CodeUnsigned},
		"too old":         {"bank", body, signed("e", body, now.Add(-6*time.Minute)), effects.CodeUnsigned},
		"of the future":   {"bank", body, signed("e", body, now.Add(6*time.Minute)), effects.CodeUnsigned},
		"not JSON":        {"bank", "<xml/>", signed("e", "<xml/>", now), effects.CodeInvalid},
		"a name twice":    {"bank", `{"a":1,"a":2}`, signed("e", `{"a":1,"a":2}`, now), effects.CodeInvalid},
		"nested too deep": {"bank", deep, signed("e", deep, now), effects.CodeInvalid},
		"too many values": {"bank", many, signed("e", many, now), effects.CodeInvalid},
	} {
		_, err := w.Receive(t.Context(), c.inbox, c.header, []byte(c.body))
		if r := refusalOf(err); r == nil || r.Code != c.code || strings.Contains(r.Error(), inboxSecret) || strings.Contains(r.Error(), "INV-1") {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	if n := w.count(`SELECT count(*) FROM inbox_events`); n != 0 {
		t.Errorf("%d events are stored", n)
	}
}

func TestEventsThatFitNothingAreListedAfterADay(t *testing.T) {
	t.Parallel()
	w := newInbox(t)
	l := w.open("run", "pod-1")
	b := w.proceed(l, "send_payment", pay("INV-1", "4200.00"))
	w.arrive("evt_ours", event(booked, "INV-1", "4200.00"))
	w.arrive("evt_strange", event(booked, "INV-404", "1.00"))
	w.arrive("evt_reference", `{"type":"payment.booked","data":{"id":"P-INV-1"}}`) // told before the agent has said it
	w.arrive("evt_strange", event(booked, "INV-404", "1.00"))
	w.finish(b, "taken", reference("P-INV-1"))
	unmatched := func() []inbox.Event {
		list, err := inbox.Unmatched(t.Context(), w.db, 10)
		if err != nil {
			t.Fatal(err)
		}
		n, err := inbox.CountUnmatched(t.Context(), w.db, 10)
		if err != nil || n != len(list) {
			t.Errorf("%d are counted, %d listed, %v", n, len(list), err)
		}
		return list
	}
	if list := unmatched(); len(list) != 0 {
		t.Errorf("listed at once: %+v", list)
	}
	w.exec(`ALTER TABLE inbox_events DISABLE TRIGGER inbox_events_fixed`)
	w.exec(`UPDATE inbox_events SET received_at = received_at - interval '24 hours', examine_at = examine_at - interval '24 hours'`)
	w.exec(`ALTER TABLE inbox_events ENABLE TRIGGER inbox_events_fixed`)
	w.told()
	list := unmatched()
	if len(list) != 1 || list[0].EventID != "evt_strange" || list[0].Repeats != 1 || list[0].Inbox != "bank" || !strings.Contains(list[0].Body, "INV-404") {
		t.Errorf("%+v", list)
	}
	// It turns out to be about a call after all.
	w.lost("run-2", pay("INV-404", "1.00"))
	w.look()
	if list := unmatched(); len(list) != 0 {
		t.Errorf("still listed: %+v", list)
	}
}

// Secrets in an event are in no row, and what is ours is found also where it looks like one.
func TestBC148_SecretsInEventsAreNotStored(t *testing.T) {
	t.Parallel()
	w := newInbox(t)
	card := "4111111111111111"
	b := w.lost("run", pay(card, "4200.00"))
	w.arrive("evt_1", event(booked, card, "4200.00", `"api_key":"tvly-77-secret"`, `"payer_card":"5500 0000 0000 0004"`, `"dsn":"postgres://u:pw9-secret@db/x"`))
	w.wantState(b.EffectID, effects.Taken)
	for _, secret := range []string{"tvly-77-secret", "5500 0000 0000 0004", "pw9-secret", inboxSecret} {
		for _, table := range []string{"inbox_events", "lookups", "evidence", "decisions", "effects", "effect_events"} {
			if n := w.count(`SELECT count(*) FROM `+table+` x WHERE x::text LIKE '%' || $1 || '%'`, secret); n != 0 {
				t.Errorf("%s is in %s", secret, table)
			}
		}
	}
	if n := w.count(`SELECT count(*) FROM inbox_events WHERE body LIKE '%' || $1 || '%'`, card); n != 0 {
		t.Error("what has the form of a card number is stored with the event")
	}
}

func TestTheInboxIsAppendOnly(t *testing.T) {
	t.Parallel()
	w := newInbox(t)
	w.receive("evt_1", event(booked, "INV-1", "4200.00"))
	for _, statement := range []string{
		`UPDATE inbox_events SET body = '{}'`, `UPDATE inbox_events SET received_at = clock_timestamp()`, `UPDATE inbox_events SET event_id = 'x'`,
		`DELETE FROM inbox_events`, `TRUNCATE inbox_events`,
	} {
		if _, err := w.db.Pool().ExecContext(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v", statement, err)
		}
	}
}
