package desk_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"quittance/reconcile/effects"
	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/simulator"
)

// says fails for each text that a page does not hold.
func says(t testing.TB, a answer, texts ...string) {
	t.Helper()
	text := a.text()
	for _, want := range texts {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q:\n%s", want, text)
		}
	}
}

// rowSays is what the queue says of an effect.
func (v *visitor) rowSays(id string) string {
	v.w.t.Helper()
	_, row, found := strings.Cut(v.get("/").body, `data-live="known-`+id+`"`)
	if !found {
		v.w.t.Fatalf("the queue does not list %s", id)
	}
	row, _, _ = strings.Cut(row, "</td>")
	return answer{body: "<td " + row}.text()
}

func TestBC067_TheEndOfTheScheduleIsSaidAndDecidesNothing(t *testing.T) {
	t.Parallel()
	w := newLooked(t)
	w.bank.Tell(simulator.Behaviour{Fault: simulator.Hangup})
	id := w.asks("blunt", "INV-67", 5000)
	w.exec(`UPDATE lookup_schedule SET next_lookup_at = clock_timestamp(), step = 20 WHERE effect_id = $1::uuid`, id)
	w.soon(func() bool { return !w.looked(id, 2).EndedAt.IsZero() })
	v := w.signedIn("petra")
	says(t, v.get("/effects/"+id), "The schedule ended at", "stays unknown until a person finds out", "Could not check", "Asked the downstream 2 times: could not check")
	if row := v.rowSays(id); !strings.Contains(row, "look-ups ended without proof; the last: could not check: its answer cannot be read") {
		t.Errorf("the row: %s", row)
	}
	if x := w.effect(id); x.State != "interrupted" || len(x.Decisions) != 0 {
		t.Errorf("%s, %d decisions", x.State, len(x.Decisions))
	}
}

func TestBC070_InsideTheLagThePageSaysNotFoundYet(t *testing.T) {
	t.Parallel()
	w := newLooked(t)
	w.bank.Put(tr("tr_70", "INV-70", 5000))
	w.bank.Tell(simulator.Behaviour{Lag: time.Hour})
	id := w.asks("slow", "INV-70", 5000)
	v := w.signedIn("petra")
	page := v.get("/effects/" + id)
	says(t, page, "Not found yet", "Nothing was found, which does not prove yet that it did not happen", "6 of 9 hold; all can from", "The request may still land; from")
	if strings.Contains(page.body, " checked") {
		t.Error("a verdict is proposed")
	}
	if row := v.rowSays(id); !strings.Contains(row, "not found yet; can be proven from") {
		t.Errorf("the row: %s", row)
	}
	w.bank.Tell(simulator.Behaviour{})
	w.ask(id)
	says(t, v.get("/effects/"+id), "tr_70", "Matches", "Asked the downstream: found (tr_70)", "A look-up decided: it took effect (tr_70)")
}

// Six cards, six answers: one of them is a "not found", and none changes anything.
func TestBC071_OnlyTheDeclaredNotFoundIsShownAsOne(t *testing.T) {
	t.Parallel()
	w := newLooked(t)
	v := w.signedIn("petra")
	for i, c := range []struct {
		fault simulator.Fault
		says  string
	}{
		{simulator.Unauthorized, "could not check: it refused our credentials (401)"}, {simulator.Forbidden, "could not check: it refused our credentials (403)"},
		{simulator.NotFoundJSON, "not found yet"}, {simulator.NotFoundHTML, "(404)"}, {simulator.Gone, "(410)"},
		{simulator.TooMany, "could not check: it asks to be left alone (429)"}, // last: its host is left alone
	} {
		w.bank.Tell(simulator.Behaviour{Fault: c.fault})
		id := w.asks("wire", fmt.Sprint("INV-71-", i), 5000)
		if row := v.rowSays(id); !strings.Contains(row, c.says) || !strings.Contains(row, "could not check") && c.fault != simulator.NotFoundJSON {
			t.Errorf("%s, the row: %s", c.fault, row)
		}
		says(t, v.get("/effects/"+id), c.says)
		if x := w.effect(id); x.State != "interrupted" {
			t.Errorf("%s: %s", c.fault, x.State)
		}
	}
}

func TestBC072_AnErrorPageIsCutAndShownAsText(t *testing.T) {
	t.Parallel()
	w := newLooked(t)
	w.bank.Tell(simulator.Behaviour{Fault: simulator.BadGateway})
	id := w.asks("wire", "INV-72", 5000)
	page := w.signedIn("petra").get("/effects/" + id)
	says(t, page, "Could not check: it failed (502).", "<script>x()</script>", "bytes in all)")
	if strings.Contains(page.body, "<script>x()") || len(page.body) > 100_000 {
		t.Errorf("it runs, or is not cut: %d bytes", len(page.body))
	}
	if l := w.looked(id, 1).Looks[0]; len(l.Excerpt) > 4096 || l.Status != 502 {
		t.Errorf("%d bytes are kept of status %d", len(l.Excerpt), l.Status)
	}
}

func TestBC073_DifferencesAreShownAndAWrongLinkIsUndone(t *testing.T) {
	t.Parallel()
	w := newLooked(t)
	w.bank.Put(tr("tr_1927", "Nordkabel (1927)", 224000), tr("tr_615", "INV-73", 61500))
	possible, differs := w.asks("wire", "27", 224000), w.asks("wire", "INV-73", 224000)
	v := w.signedIn("petra")
	says(t, v.get("/effects/"+possible), "Possible match", "Possible, without our key", "tr_1927", "What the agent meant to do")
	page := v.get("/effects/" + differs)
	says(t, page, "Found, and differs", "Amount differs", "2,240.00 USD", "615.00 USD", "tr_615")
	if row := v.rowSays(differs); !strings.Contains(row, "found, but its amount, currency or recipient differs") {
		t.Errorf("the row: %s", row)
	}
	for _, id := range []string{possible, differs} {
		if w.effect(id).State != "interrupted" {
			t.Errorf("%s was decided", id)
		}
	}
	// A person links the wrong one, and takes it back with a reason.
	_, form := v.toConfirm(possible, url.Values{"verdict": {"taken"}, "note": {"It looks like it"}, "record": {"is tr_1927"}})
	form.Set("reference", "tr_1927")
	if a := v.send("/effects/"+possible+"/decision", form); a.status != http.StatusSeeOther || w.effect(possible).Reference != "tr_1927" {
		t.Fatalf("linking: %d %s", a.status, a.text())
	}
	if _, err := w.engine.Undo(t.Context(), w.petra, effects.Undo{EffectID: possible, Note: "1927 is another invoice"}); err != nil {
		t.Fatal(err)
	}
	says(t, v.get("/effects/"+possible), "took the decision back", "1927 is another invoice")
}

// The agent reported ch_2, and the bank shows ch_1 too: not simply "found".
func TestBC077_TwoRecordsAreShownAsADouble(t *testing.T) {
	t.Parallel()
	w := newLooked(t)
	w.bank.Put(tr("ch_1", "O-31", 14500), tr("ch_2", "O-31", 14500))
	_, id := w.begun("run-O-31", "wire", wire("O-31", 14500))
	w.finish(id, "taken", "ch_2")
	v := w.signedIn("petra")
	page := v.get("/effects/" + id)
	form := url.Values{"form": {page.token(t, "/effects/"+id+"/lookup")}}
	if a := v.send("/effects/"+id+"/lookup", form); a.location() != "/effects/"+id+"?done=asked#says" {
		t.Fatalf("check now: %d %s", a.status, a.location())
	}
	w.looked(id, 1)
	page = v.get("/effects/" + id)
	says(t, page, "Contradiction", "Possible double", "ch_1: 145.00 USD", "ch_2: 145.00 USD", "Yes, claim it back", "2 records fit this one call: a possible double")
	page = v.get("/recoveries")
	says(t, page, "wire", "Suspected", "145.00 USD")
	page = v.get("/effects/" + id)
	form = url.Values{"form": {page.token(t, "/effects/"+id+"/acknowledge")}, "version": {fmt.Sprint(w.effect(id).Version)}, "note": {"ch_1 is to be claimed back"}, "recovery": {"yes"}}
	if a := v.send("/effects/"+id+"/acknowledge", form); a.status != http.StatusSeeOther || w.effect(id).Contradictions[0].Recovery != "yes" {
		t.Errorf("claiming it back: %d %s", a.status, a.text())
	}
	says(t, v.get("/recoveries"), "Left twice", "145.00 USD")
}

func TestBC079_FoundNotFinalIsNoVerdict(t *testing.T) {
	t.Parallel()
	w := newLooked(t)
	w.bank.Put(simulator.Payment{ID: "tr_5", Reference: "INV-79", Amount: 5000, Currency: "USD", To: "DE02", Status: "processing", LandedAt: time.Now()})
	id := w.asks("wire", "INV-79", 5000)
	v := w.signedIn("petra")
	page := v.get("/effects/" + id)
	says(t, page, "Found, not final", "It was found, but it is not final.", "tr_5", "processing", "It is asked again at")
	if strings.Contains(page.body, " checked") {
		t.Error("a verdict, or a record, is chosen beforehand")
	}
	if row := v.rowSays(id); !strings.Contains(row, "found, not final") {
		t.Errorf("the row: %s", row)
	}
	for range 2 {
		w.ask(id)
	}
	says(t, v.get("/effects/"+id), "Asked the downstream 3 times: found, not final")
	if w.effect(id).State != "interrupted" {
		t.Error("it counted as taken")
	}
}

func TestBC079_ThatItFailedIsSaid(t *testing.T) {
	t.Parallel()
	w := newLooked(t)
	w.bank.Put(simulator.Payment{ID: "tr_5", Reference: "INV-79", Amount: 5000, Currency: "USD", To: "DE02", Status: "processing", LandedAt: time.Now()})
	id := w.asks("wire", "INV-79", 5000)
	w.bank.Turn("tr_5", "canceled")
	w.ask(id)
	page := w.signedIn("petra").get("/effects/" + id)
	says(t, page, "Cancelled for good", "canceled", "Asked the downstream: found, not final", "Asked the downstream: not found yet")
	if w.effect(id).State != "interrupted" {
		t.Error("a cancelled record that does not carry our key decided")
	}
}

func TestBC107_WhatLookUpsFoundIsNamedBeforeItIsDenied(t *testing.T) {
	t.Parallel()
	w := newLooked(t)
	w.bank.Put(tr("tr_552", "INV-107", 61500))
	id := w.asks("wire", "INV-107", 31000)
	v := w.signedIn("petra")
	says(t, v.get("/effects/"+id), "Found, and speaks against a no", "I have looked: tr_552 is not this call")
	confirm, form := v.toConfirm(id, verdict("not_taken", "It is not ours"))
	says(t, confirm, "tr_552: 615.00 USD, booked, differs from the intent.", "The downstream is asked once more before agents see it", "vendor's own key lives until")
	a := v.send("/effects/"+id+"/decision", form)
	if a.status != http.StatusUnprocessableEntity || !strings.Contains(a.text(), "tr_552") || w.effect(id).State != "interrupted" {
		t.Fatalf("denied without a word about it: %d %s", a.status, w.effect(id).State)
	}
	// Ticked beside the verdict, it is ticked on the page that confirms it.
	fields := verdict("not_taken", "615.00 is the March rent")
	fields.Set("not_ours", "tr_552")
	confirm, form = v.toConfirm(id, fields)
	if !strings.Contains(confirm.body, `value="tr_552" checked`) {
		t.Error("what was ticked is forgotten")
	}
	if a = v.send("/effects/"+id+"/decision", form); a.status != http.StatusSeeOther {
		t.Fatalf("with it named: %d %s", a.status, a.text())
	}
	page := v.get("/effects/" + id)
	says(t, page, "Not ours, a person said", "Then the downstream is asked once more", "Nothing found lets it go on; anything found opens it again")
	if x := w.effect(id); x.State != "cleared" || len(x.Attempts) != 1 || len(w.looked(id, 1).Looks) == 0 {
		t.Errorf("%s, %d attempts", x.State, len(x.Attempts))
	}
}

func TestBC108_ClosedByALookUpIsToldApart(t *testing.T) {
	t.Parallel()
	w := newLooked(t)
	w.bank.Put(tr("tr_108", "INV-108", 5000))
	id := w.interrupted("run-108", "wire", wire("INV-108", 5000))
	w.looked(id, 1)
	v := w.signedIn("vera")
	says(t, v.get("/?closed=look_up"), "for INV-108", "by a look-up, tr_108")
	says(t, v.get("/effects/"+id), "By a look-up.", "A look-up decided: it took effect (tr_108)", "Exactly one final record with our key was found")
	if text := v.get("/?closed=person").text(); strings.Contains(text, "INV-108") {
		t.Error("it is listed as closed by a person")
	}
}

func TestBC111_WhileItIsAskedThePageSaysSo(t *testing.T) {
	t.Parallel()
	w := newLooked(t)
	w.bank.Tell(simulator.Behaviour{Takes: 2 * time.Second})
	id := w.interrupted("run-111", "wire", wire("INV-111", 5000))
	w.soon(func() bool {
		s, err := w.engine.Looks(t.Context(), id)
		return err == nil && s.Asking
	})
	v := w.signedIn("petra")
	page := v.get("/effects/" + id)
	says(t, page, "Asking now…", "An attempt may still send its request")
	if strings.Contains(page.body, " checked") {
		t.Error("a verdict is chosen beforehand")
	}
	// Nobody is asked twice at once.
	form := url.Values{"form": {page.token(t, "/effects/"+id+"/review")}, "version": {fmt.Sprint(w.effect(id).Version)}}
	if a := v.send("/effects/"+id+"/lookup", form); a.location() != "/effects/"+id+"?done=asking#says" {
		t.Errorf("check now while it is asked: %d %s", a.status, a.location())
	}
	w.looked(id, 1)
	if n := w.bank.Stats().Asked["INV-111"]; n != 1 || w.bank.Stats().Doubled {
		t.Errorf("asked %d times", n)
	}
}

func TestBC112_ADroppedConnectionIsSaidAndTriedAgain(t *testing.T) {
	t.Parallel()
	w := newLooked(t)
	w.bank.Tell(simulator.Behaviour{Fault: simulator.Hangup})
	id := w.asks("wire", "INV-112", 5000)
	v := w.signedIn("petra")
	page := v.get("/effects/" + id)
	says(t, page, "Could not check", "Could not check: its answer cannot be read (the answer broke off).", "Try again now", "Yes, it took effect", "asked "+w.looked(id, 1).Looks[0].AskedAt.UTC().Format("15:04:05")+" UTC")
	w.bank.Put(simulator.Payment{ID: "tr_112", Reference: "INV-112", Amount: 5000, Currency: "USD", To: "DE02", Status: "processing", LandedAt: time.Now()})
	w.bank.Tell(simulator.Behaviour{})
	form := verdict("unsure", "The portal is down too")
	form.Set("form", page.token(t, "/effects/"+id+"/review"))
	form.Set("version", fmt.Sprint(w.effect(id).Version))
	if a := v.send("/effects/"+id+"/lookup", form); a.location() != "/effects/"+id+"?done=asked#says" {
		t.Fatalf("trying again: %d %s", a.status, a.text())
	}
	w.looked(id, 2)
	page = v.get("/effects/" + id)
	says(t, page, "Found, not final", "The portal is down too", "What you had typed is still here")
	if !strings.Contains(page.body, `value="unsure" checked`) {
		t.Error("the choice is forgotten")
	}
}

func TestBC139_WhatADownstreamSaysIsText(t *testing.T) {
	t.Parallel()
	w := newLooked(t)
	const bad = `"><img src=x onerror=alert(1)><script>alert(2)</script>`
	w.bank.Put(simulator.Payment{ID: "tr" + bad, Reference: "INV-139", Amount: 1, Currency: bad, To: bad, Status: bad, LandedAt: time.Now()})
	id := w.asks("wire", "INV-139", 5000)
	v := w.signedIn("ada")
	confirm, _ := v.toConfirm(id, verdict("stop", "see"))
	tools := v.get("/tools")
	tried := v.send("/tools/lookup", url.Values{"tool": {"wire"}, "key": {"INV-139"}, "form": {tools.token(t, "/tools/lookup#try")}})
	for name, a := range map[string]answer{"effect": v.get("/effects/" + id), "queue": v.get("/"), "confirm": confirm, "tools": tried} {
		if strings.Contains(a.body, "<img src=x") || strings.Contains(a.body, "<script>alert") {
			t.Errorf("%s holds markup from outside", name)
		}
		if name != "queue" && !strings.Contains(a.text(), "onerror=alert(1)") {
			t.Errorf("%s does not show the text itself", name)
		}
	}
}

// The token that looks up, and a token in an answer, are on no page, in no answer and in no
// row.
func TestBC148_TheLookUpsSecretsAreNowhere(t *testing.T) {
	t.Parallel()
	w := newLooked(t)
	m := w.looks()
	if err := w.access.AddPersonToken(t.Context(), w.ada.ID, "test", "qp_token-of-ada-00001", 0); err != nil {
		t.Fatal(err)
	}
	v := w.signedIn("ada")
	secret := regexp.MustCompile(`zz91`)
	for name, id := range m {
		r := v.request(http.MethodGet, "/v1/effects/"+id, nil)
		r.Header.Set("Authorization", "Bearer qp_token-of-ada-00001")
		for _, a := range []answer{v.get("/effects/" + id), v.do(r)} {
			if a.status != http.StatusOK || secret.MatchString(a.body) {
				t.Errorf("%s: %d, or a secret", name, a.status)
			}
		}
	}
	says(t, v.get("/effects/"+m["not final"]), "Authorization: [secret]")
	tools := v.get("/tools")
	tried := v.send("/tools/lookup", url.Values{"tool": {"wire"}, "key": {"INV-NO"}, "form": {tools.token(t, "/tools/lookup#try")}})
	if secret.MatchString(tools.body) || secret.MatchString(tried.body) || tried.status != http.StatusOK {
		t.Errorf("the tools page: %d, or a secret", tried.status)
	}
	var rows int
	if err := w.db.Get(t.Context(), &rows, `SELECT count(*) FROM lookups WHERE lookups::text LIKE '%zz91%'`); err != nil || rows != 0 {
		t.Errorf("%d rows hold it, %v", rows, err)
	}
	if w.reasonOf(m["denied"]) != lookup.CouldNot {
		t.Error("the scene is not what it was")
	}
}
