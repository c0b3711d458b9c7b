package desk_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/playwright-community/playwright-go"

	"quittance/reconcile/effects"
	"quittance/web/browsertest"
)

// TestLiveQueue: rows decided elsewhere grey out in place, new ones are announced, and
// nothing else moves.
func TestLiveQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.interrupted("run-1", "send_email", `{"to":"a@example.com","subject":"one"}`)
	w.interrupted("run-2", "send_email", `{"to":"b@example.com","subject":"two"}`)
	p := w.page(browsertest.Look{}, "petra", "/")
	see(t, p, "Send one to a@example.com")
	w.decide(w.quentin, effects.Decide{EffectID: first, Verdict: effects.VerdictTaken})
	must(t, p.Locator("tr.gone", playwright.PageLocatorOptions{HasText: "Send one"}).WaitFor())
	see(t, p, "decided elsewhere")
	w.interrupted("run-3", "send_email", `{"to":"c@example.com","subject":"three"}`)
	must(t, p.GetByRole("link", playwright.PageGetByRoleOptions{Name: "1 new"}).WaitFor())
	if n, _ := p.Locator("#rows tr[data-row]").Count(); n != 2 {
		t.Errorf("%d rows: a new one was put in by itself", n)
	}
	must(t, p.GetByRole("link", playwright.PageGetByRoleOptions{Name: "1 new"}).Click())
	see(t, p, "Send three to c@example.com")
}

// TestLiveForm: a form that somebody types into is never touched; it says that things
// have moved, and what was typed survives a reload.
func TestLiveForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.interrupted("run-1", "send_payment", pay("Birch", "INV-1", "20000.00", "USD"))
	p := w.page(browsertest.Look{}, "petra", "/effects/"+id)
	must(t, p.GetByLabel("Looked, cannot tell yet").Check())
	note := p.GetByLabel("What did you see")
	must(t, note.Fill("Half a sentence"))
	see(t, p, "Kept as a draft, only for you.")
	w.decide(w.quentin, effects.Decide{EffectID: id, Verdict: effects.VerdictNotTaken})
	see(t, p, "Quentin Osei said")
	see(t, p, "Show how it stands now")
	if got, _ := note.InputValue(); got != "Half a sentence" {
		t.Errorf("the form holds %q", got)
	}
	must(t, p.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Show how it stands now"}).Click())
	see(t, p, "Waits for a second person")
	see(t, p, "Half a sentence")
	other := w.page(browsertest.Look{}, "quentin", "/effects/"+id)
	see(t, other, "You gave this verdict")
	if body, _ := other.Locator("body").InnerText(); strings.Contains(body, "Half a sentence") {
		t.Error("another person is shown the draft")
	}
}

// TestKeyboard goes from the queue to a decision and its undo by keys alone.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.interrupted("run-1", "send_payment", pay("Birch", "INV-1", "20.00", "USD"))
	w.interrupted("run-2", "send_email", `{"to":"b@example.com","subject":"two"}`)
	p := w.page(browsertest.Look{}, "petra", "/")
	press := func(keys ...string) {
		for _, k := range keys {
			must(t, p.Keyboard().Press(k))
		}
	}
	press("j", "j", "k", "x")
	if n, _ := p.Locator("tr.now :checked").Count(); n != 1 {
		t.Error("x did not choose the row")
	}
	press("x", "Enter")
	must(t, p.WaitForURL("**/effects/"+id))
	press("n")
	if v, _ := p.Locator("#verdict :checked").Count(); v != 0 {
		t.Error("one key chose a verdict that says no")
	}
	press("t")
	must(t, p.Keyboard().Type("Portal shows po_1"))
	press("Control+Enter")
	must(t, p.WaitForURL("**/confirm"))
	press("Control+Enter")
	see(t, p, "Agents do not see it yet")
	press("u")
	must(t, p.Keyboard().Type("Wrong one"))
	press("Control+Enter")
	see(t, p, "We do not know whether it happened.")
	press("?")
	see(t, p, "next, previous row")
	press("Escape", "g", "r")
	must(t, p.WaitForURL("**/runs"))
	press("/")
	must(t, p.Keyboard().Type("run-1"))
	press("Enter")
	must(t, p.WaitForURL("**/runs?run=run-1*"))
}

// TestEvents: an open page hears of a change within a second, and a stream ends with
// its session's right to it.
func TestEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.signedIn("petra")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	resp, err := v.c.Do(v.request(http.MethodGet, "/events", nil).WithContext(ctx))
	must(t, err)
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("content type %q", got)
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() && lines.Text() != ": open" {
	}
	began := time.Now()
	w.interrupted("run-1", "send_email", `{"to":"a@example.com","subject":"one"}`)
	for lines.Scan() && lines.Text() != "event: changed" {
	}
	if took := time.Since(began); took > time.Second || lines.Err() != nil {
		t.Errorf("heard after %v, %v", took, lines.Err())
	}
	if a := w.visitor().get("/events"); a.status != http.StatusSeeOther {
		t.Errorf("somebody who is not signed in: %d", a.status)
	}
}
