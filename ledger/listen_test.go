package ledger_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"quittance/ledger"
	"quittance/ledger/ledgertest"
)

func TestListenBeginsWithRereadThenDeliversInOrder(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	events := listen(t, t.Context(), db, "runs", "Queue")
	want(t, events, ledger.Event{Reread: true})
	notify(t, db, "elsewhere", "x")
	notify(t, db, "runs", "1")
	notify(t, db, "Queue", `with "quotes" and 'more'`)
	want(t, events, ledger.Event{Channel: "runs", Payload: "1"})
	want(t, events, ledger.Event{Channel: "Queue", Payload: `with "quotes" and 'more'`})
}

func TestABrokenListenerComesBackWithReread(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	events := listen(t, t.Context(), db, "runs")
	want(t, events, ledger.Event{Reread: true})
	run(t, db.Pool(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE 'LISTEN%'`)
	want(t, events, ledger.Event{Reread: true})
	notify(t, db, "runs", "after")
	want(t, events, ledger.Event{Channel: "runs", Payload: "after"})
}

// A reader that stands still loses hints, never the knowledge that it lost some, and
// holds up nobody.
func TestASlowReaderIsToldToReread(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	events := listen(t, t.Context(), db, "runs")
	const sent = 2000
	run(t, db.Pool(), fmt.Sprintf(`SELECT pg_notify('runs', n::text) FROM generate_series(1, %d) n`, sent))
	other := listen(t, t.Context(), db, "runs") // opened after: what it hears was sent after
	want(t, other, ledger.Event{Reread: true})
	notify(t, db, "runs", "last")
	want(t, other, ledger.Event{Channel: "runs", Payload: "last"})
	want(t, events, ledger.Event{Reread: true})
	seen := 0
	for e := next(t, events); !e.Reread; e = next(t, events) {
		seen++
	}
	if seen >= sent {
		t.Fatalf("all %d hints fitted the buffer, so this test proves nothing", seen)
	}
	// Hints of the 2,000 may still come in and fill the buffer once more, so that one of
	// these is stood in for by a Reread: it is sent until one gets through.
	eventually(t, func(ctx context.Context) bool {
		notify(t, db, "runs", "again")
		for {
			select {
			case e := <-events:
				if e.Payload == "again" {
					return true
				}
			default:
				return false
			}
		}
	})
}

func TestListenEndsWithItsContext(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	events := listen(t, ctx, db, "runs")
	want(t, events, ledger.Event{Reread: true})
	cancel()
	select {
	case _, open := <-events:
		if open {
			t.Error("an event after the end")
		}
	case <-time.After(10 * time.Second):
		t.Error("the channel was not closed")
	}
	if _, err := db.Listen(ctx, "runs"); err == nil {
		t.Error("Listen with an ended context succeeds")
	}
}

func listen(t *testing.T, ctx context.Context, db *ledger.DB, channels ...string) <-chan ledger.Event {
	t.Helper()
	events, err := db.Listen(ctx, channels...)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func notify(t *testing.T, db *ledger.DB, channel, payload string) {
	t.Helper()
	if err := db.Notify(t.Context(), channel, payload); err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, events <-chan ledger.Event, want ledger.Event) {
	t.Helper()
	if e := next(t, events); e != want {
		t.Fatalf("event %+v, want %+v", e, want)
	}
}

func next(t *testing.T, events <-chan ledger.Event) ledger.Event {
	t.Helper()
	select {
	case e := <-events:
		return e
	case <-time.After(20 * time.Second):
		t.Fatal("no event")
		panic("unreachable")
	}
}

// eventually waits for a state that gives no signal.
func eventually(t *testing.T, ok func(context.Context) bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(t.Context()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it never came true")
		}
	}
}
