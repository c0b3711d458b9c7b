package desk_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// everyPage is a page of each kind.
func (w *world) everyPage() []string {
	id := w.interrupted("run-pages", "send_payment", pay("Pages", "one", "20.00", "USD"))
	return []string{"/", "/effects/" + id, "/decided", "/runs", "/tools", "/audit", "/people", "/you", "/health"}
}

// saysEverywhere fails the test unless every page says it, to whoever may see the page.
func (w *world) saysEverywhere(pages []string, text string, want bool) {
	w.t.Helper()
	ada := w.signedIn("ada")
	for _, path := range pages {
		if says := strings.Contains(ada.get(path).body, text); says != want {
			w.t.Errorf("%s says %q: %t, want %t", path, text, says, want)
		}
	}
}

// A row of the log is deleted by its owner: within the sealer's next second nothing is
// released and every page says so; a person acknowledges it, and the trail has both. What
// was found stays on the health page for ever.
func TestADamagedLogIsSaidOnEveryPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pages := w.everyPage()
	running, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.sealer.Run(running)
	}()
	t.Cleanup(func() { stop(); <-done })
	w.until(func() bool { return w.sealer.Status().Anchored > 0 })
	ada := w.signedIn("ada")
	if body := ada.get("/health").body; !strings.Contains(body, "Sealed log") || !strings.Contains(body, "anchor.json") {
		t.Error("the health page says nothing of the sealed log and its anchor")
	}
	w.saysEverywhere(pages, "Nothing is released", false)

	w.exec(`ALTER TABLE effect_events DISABLE TRIGGER USER`)
	w.exec(`DELETE FROM effect_events WHERE id = (SELECT max(last_id) FROM seal_blocks WHERE stream = 'effect_events')`)
	w.until(func() bool {
		g, err := w.engine.Gap(t.Context())
		return err == nil && g != nil
	})
	w.saysEverywhere(pages, "Nothing is released", true)
	form := url.Values{"form": {ada.get("/health").token(t, "/health/gap/acknowledge")}, "note": {"somebody deleted a row by hand"}}
	if a := ada.send("/health/gap/acknowledge", form); a.status != http.StatusSeeOther {
		t.Fatalf("acknowledged: %d", a.status)
	}
	w.saysEverywhere(pages, "Nothing is released", false)
	w.saysEverywhere(pages, "New effects start as interrupted", true)
	trail := ada.get("/audit").body
	for _, text := range []string{"gap.found", "the last that was sealed, is gone", "gap.acknowledge", "somebody deleted a row by hand"} {
		if !strings.Contains(trail, text) {
			t.Errorf("the trail does not hold %q", text)
		}
	}
	if !strings.Contains(ada.get("/health").body, "the last that was sealed, is gone") {
		t.Error("the health page no longer says what was found")
	}
}

// A database that was copied for a drill says so everywhere until an admin says that it
// belongs where it is.
func TestACopyIsSaidOnEveryPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pages := w.everyPage()
	for _, place := range []string{"production", "drill"} {
		w.saysEverywhere(pages, "This is a copy", false)
		if err := w.engine.Arrive(t.Context(), place, false, true); err != nil {
			t.Fatal(err)
		}
	}
	const says = "This is a copy of the database of &#34;production&#34;"
	w.saysEverywhere(pages, says, true)
	// Also after a restart in the place of the drill.
	if err := w.engine.Arrive(t.Context(), "drill", false, true); err != nil {
		t.Fatal(err)
	}
	w.saysEverywhere(pages, says, true)
	if strings.Contains(w.signedIn("petra").get("/health").body, "/health/copy/adopt") {
		t.Error("an operator is offered to switch look-ups on")
	}
	ada := w.signedIn("ada")
	form := url.Values{"form": {ada.get("/health").token(t, "/health/copy/adopt")}, "note": {""}}
	if a := ada.send("/health/copy/adopt", form); a.status != http.StatusConflict {
		t.Errorf("without a note: %d", a.status)
	}
	form = url.Values{"form": {ada.get("/health").token(t, "/health/copy/adopt")}, "note": {"the old host is gone for good"}}
	if a := ada.send("/health/copy/adopt", form); a.status != http.StatusSeeOther {
		t.Fatalf("adopted: %d", a.status)
	}
	w.saysEverywhere(pages, "This is a copy", false)
	if err := w.engine.Arrive(t.Context(), "drill", false, true); err != nil {
		t.Fatal(err)
	}
	w.saysEverywhere(pages, "This is a copy", false)
	if trail := ada.get("/audit").body; !strings.Contains(trail, "copy.adopt") || !strings.Contains(trail, "the old host is gone for good") {
		t.Error("the trail does not say who switched them on")
	}
}

// until waits for what a loop of the server does.
func (w *world) until(f func() bool) {
	w.t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); {
		if time.Now().After(end) {
			w.t.Fatal("it never came")
		}
		time.Sleep(20 * time.Millisecond)
	}
}
