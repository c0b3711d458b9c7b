package desk_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/playwright-community/playwright-go"

	"quittance/reconcile/effects"
	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/simulator"
	"quittance/web/browsertest"
)

// TestCheckNow asks from the page, with and without scripts; with them the answer comes by
// itself, and neither what was typed nor what was opened is lost by it.
func TestCheckNow(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]browsertest.Look{"with scripts": {}, "without scripts": {NoScript: true}, "on a phone": {Width: 360, Height: 740}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newLooked(t)
			w.t = t
			id := w.asks("wire", "INV-1", 5000)
			p := w.page(look, "petra", "/effects/"+id)
			see(t, p, "Nothing was found, which does not prove yet that it did not happen.")
			must(t, p.GetByLabel("Looked, cannot tell yet").Check())
			must(t, p.GetByLabel("What did you see").Fill("Half a sentence"))
			w.bank.Tell(simulator.Behaviour{Takes: time.Second})
			w.bank.Put(simulator.Payment{ID: "tr_1", Reference: "INV-1", Amount: 5000, Currency: "USD", To: "DE02", Status: "processing", LandedAt: time.Now()})
			must(t, p.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Check now"}).Click())
			see(t, p, "The downstream is being asked.")
			if look.NoScript {
				w.looked(id, 2)
				_, err := p.Reload()
				must(t, err)
			} else {
				must(t, p.Locator(".fold summary").First().Click())
			}
			see(t, p, "It was found, but it is not final.")
			if got, _ := p.GetByLabel("What did you see").InputValue(); got != "Half a sentence" {
				t.Errorf("the note holds %q", got)
			}
			if open, _ := p.Locator(".fold[open]").Count(); open != 1 && !look.NoScript {
				t.Errorf("%d parts of the history are open, want the one that was opened", open)
			}
			if n := w.audited("effect.look_up", "done", id); n != 1 {
				t.Errorf("%d audit lines", n)
			}
		})
	}
}

// The button is reached and pressed by keys, and the Enter of a field never presses it.
func TestCheckNowByKeyboard(t *testing.T) {
	t.Parallel()
	w := newLooked(t)
	id := w.asks("wire", "INV-1", 5000)
	p := w.page(browsertest.Look{}, "petra", "/effects/"+id)
	press := func(keys ...string) {
		for _, k := range keys {
			must(t, p.Keyboard().Press(k))
		}
	}
	press("t")
	must(t, p.Keyboard().Type("Portal shows po_1"))
	must(t, p.GetByLabel("Their reference").Focus())
	press("Enter")
	must(t, p.WaitForURL("**/confirm"))
	goTo(t, w.world, p, "/effects/"+id)
	must(t, p.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Check now"}).Focus())
	press("Enter")
	see(t, p, "The downstream is being asked.")
	w.looked(id, 2)
}

// Opening the page asks where the last answer is older than a minute, once; a page that
// reads itself again asks nobody.
func TestOpeningThePageAsksWhereTheLastAnswerIsOld(t *testing.T) {
	t.Parallel()
	w := newLooked(t)
	id := w.asks("wire", "INV-1", 5000)
	v := w.signedIn("vera")
	for range 3 {
		v.get("/effects/" + id)
	}
	time.Sleep(300 * time.Millisecond) // whoever asks wrongly does so at once
	if n := len(w.looked(id, 1).Looks); n != 1 {
		t.Fatalf("a fresh answer was asked for again: %d looks", n)
	}
	w.over(id, 61*time.Second)
	w.exec(`UPDATE lookup_schedule SET pulled = true WHERE effect_id = $1::uuid`, id)
	r := v.request(http.MethodGet, "/effects/"+id, nil)
	r.Header.Set("X-Live", "yes")
	v.do(r)
	time.Sleep(300 * time.Millisecond)
	if n := len(w.looked(id, 1).Looks); n != 1 {
		t.Fatalf("the page asked by itself: %d looks", n)
	}
	v.get("/effects/" + id)
	w.looked(id, 2)
	says(t, v.get("/effects/"+id), "somebody opened this page")
	if x := w.effect(id); x.State != "cleared" || x.DecidedBy != "look_up" {
		t.Errorf("%s by %s: all holds, twice, a minute apart", x.State, x.DecidedBy)
	}
	says(t, v.get("/effects/"+id), "It did not take effect", "all hold", "A look-up decided: it did not take effect, it may run again")
}

// "It took effect" says which of the records that were found it is.
func TestTakenSaysWhichRecordItIs(t *testing.T) {
	t.Parallel()
	w := newLooked(t)
	w.bank.Put(tr("ch_1", "O-31", 14500), tr("ch_2", "O-31", 14500))
	id := w.asks("wire", "O-31", 14500)
	v := w.signedIn("petra")
	review := func(form url.Values) answer {
		form.Set("verdict", "taken")
		form.Set("note", "Portal shows two")
		form.Set("form", v.get("/effects/"+id).token(t, "/effects/"+id+"/review"))
		form.Set("version", fmt.Sprint(w.effect(id).Version))
		return v.send("/effects/"+id+"/review", form)
	}
	for name, c := range map[string]struct {
		form url.Values
		says string
	}{
		"nothing said": {url.Values{}, "Say which of them it is"},
		"two said":     {url.Values{"record": {"is ch_1"}, "reference": {"ch_2"}}, "Say which it is"},
		"not listed":   {url.Values{"record": {"is ch_9"}}, "Say which of them it is"},
	} {
		if a := review(c.form); a.status != http.StatusUnprocessableEntity || !strings.Contains(a.text(), c.says) {
			t.Errorf("%s: %d %s", name, a.status, a.location())
		}
	}
	if a := review(url.Values{"record": {"none"}}); a.status != http.StatusSeeOther {
		t.Errorf("none of them: %d %s", a.status, a.text())
	}
	if a := review(url.Values{"record": {"is ch_2"}}); a.status != http.StatusSeeOther {
		t.Fatalf("one of them: %d %s", a.status, a.text())
	}
	says(t, v.get("/effects/"+id+"/confirm"), "Reference ch_2")
	if w.effect(id).State != "interrupted" {
		t.Error("it was decided before it was confirmed")
	}
}

// The result that the agent will be given is what the downstream shows, and not the
// policy's example; where only that is known, the confirmation says that it is the example.
func TestTheResultIsWhatTheDownstreamShows(t *testing.T) {
	t.Parallel()
	w := newLooked(t)
	moving := tr("tr_77", "O-77", 14500)
	moving.Status = "processing"
	w.bank.Put(moving)
	shown, blind := w.asks("wire", "O-77", 14500), w.asks("wire", "O-78", 14500)
	v := w.signedIn("petra")
	says(t, v.get("/effects/"+shown), "Pre-filled from what the downstream shows for tr_77", `{&#34;payment_id&#34;:&#34;tr_77&#34;}`)
	says(t, v.get("/effects/"+blind), "Pre-filled from the policy's example")
	for result, warned := range map[string]bool{`{"payment_id":"tr_1"}`: true, `{"payment_id":"tr_78"}`: false} {
		a, _ := v.toConfirm(blind, url.Values{"verdict": {"taken"}, "note": {"In the portal"}, "reference": {"tr_78"}, "result": {result}})
		if got := strings.Contains(a.text(), "the policy's example, word for word"); got != warned {
			t.Errorf("%s: warned %v, want %v", result, got, warned)
		}
	}
}

// A decision waits for one more look, and the page says so; what is found then opens it again.
func TestADecisionWaitsForOneMoreLook(t *testing.T) {
	t.Parallel()
	w := newLooked(t)
	id := w.asks("slow", "INV-1", 5000)
	w.decide(w.petra, effects.Decide{EffectID: id, Verdict: effects.VerdictNotTaken, Note: "Not in the portal"})
	v := w.signedIn("petra")
	says(t, v.get("/effects/"+id), "what was sent may land until", "Then the downstream is asked once more", "and where there is no answer, somebody confirms that it still holds")
	w.bank.Put(tr("tr_late", "INV-1", 5000))
	w.over(id, 61*time.Second)
	w.exec(`UPDATE lookup_schedule SET recheck_from = clock_timestamp() - interval '1 second', recheck_until = clock_timestamp() + interval '1 minute',
		next_lookup_at = clock_timestamp() WHERE effect_id = $1::uuid`, id)
	w.looked(id, 2)
	x := w.effect(id)
	if x.State == "cleared" {
		t.Fatalf("it is still cleared: %+v", w.looked(id, 2).Looks[0])
	}
	says(t, v.get("/effects/"+id), "found (tr_late)", "Reopened: something was found that speaks against the decision")
}

func TestALookUpIsTestedOnTheToolsPage(t *testing.T) {
	t.Parallel()
	w := newLooked(t)
	w.bank.Put(tr("tr_1", "INV-1", 4000), tr("tr_2", "INV-2", 100))
	id := w.asks("wire", "INV-1", 5000)
	before := w.looked(id, 1)
	for _, mail := range []string{"vera", "quentin", "ada"} {
		if has := strings.Contains(w.signedIn(mail).get("/tools").body, `action="/tools/lookup#try"`); has != (mail != "vera") {
			t.Errorf("%s is offered to test: %v", mail, has)
		}
	}
	v := w.signedIn("petra")
	try := func(tool, key string) answer {
		return v.send("/tools/lookup", url.Values{"tool": {tool}, "key": {key}, "form": {v.get("/tools").token(t, "/tools/lookup#try")}})
	}
	says(t, try("wire", "INV-1"), "Found, and differs", "the latest call with this key", "GET "+w.bank.URL, "Status 200", "tr_1", "40.00 USD", "50.00", "What a proven “not taken” needs", "The begin of the answer")
	says(t, try("wire", "INV-2"), "A record was found; there is no call to compare it with.", "tr_2", "No call with this key is on record")
	says(t, try("wire", "INV-3"), "Not found yet", "The canary was seen")
	w.bank.Tell(simulator.Behaviour{Fault: simulator.Forbidden})
	says(t, try("wire", "INV-1"), "Could not check: it refused our credentials (403).")
	if a := try("send_email", "x"); a.status != http.StatusConflict || !strings.Contains(a.text(), "has no look-up") {
		t.Errorf("a blind tool: %d", a.status)
	}
	if a := try("wire", ""); a.status != http.StatusUnprocessableEntity {
		t.Errorf("no key: %d", a.status)
	}
	after := w.looked(id, 1)
	if len(after.Looks) != len(before.Looks) || !after.Next.Equal(before.Next) || w.effect(id).State != "interrupted" {
		t.Error("a test changed something")
	}
	var audited int
	if err := w.db.Get(t.Context(), &audited, `SELECT count(*) FROM audit WHERE action = 'lookup.test' AND outcome = 'done' AND actor = 'Petra Lind' AND subject = 'tool:wire'`); err != nil || audited != 4 {
		t.Errorf("%d audit lines, %v", audited, err)
	}
}

// The tools page says how look-ups went, and whether the last mistake is over.
func TestToolsSayHowLookUpsGo(t *testing.T) {
	t.Parallel()
	w := newLooked(t)
	w.bank.Put(tr("tr_1", "INV-1", 5000))
	w.bank.Tell(simulator.Behaviour{Fault: simulator.Unauthorized})
	w.asks("wire", "INV-401", 5000)
	v := w.signedIn("vera")
	says(t, v.get("/tools"), "Look-up: http", "asked once; 0 could look (0 %), 0 proved something", "Could not check: it refused our credentials (401).", "In 7 days nobody was asked", "is proof, 1 ms after it can land, for 30 d", "proves nothing")
	if strings.Contains(v.get("/tools").text(), "worked since") {
		t.Error("it has not worked since")
	}
	w.bank.Tell(simulator.Behaviour{})
	w.interrupted("run-ok", "wire", wire("INV-1", 5000))
	w.soon(func() bool {
		return strings.Contains(v.get("/tools").text(), "asked 2 times; 1 could look (50 %), 1 proved something")
	})
	says(t, v.get("/tools"), "and it has worked since")
	old := w.asks("slow", "INV-OLD", 5000)
	w.over(old, 8*24*time.Hour)
	if text := v.get("/tools").text(); strings.Count(text, "nobody was asked") != 2 {
		t.Errorf("what is older than seven days counts: %s", text)
	}
	if w.reasonOf(old) != lookup.NotYet {
		t.Error("the look is not what it was")
	}
}
