package desk_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"quittance/reconcile/effects"
)

// toConfirm fills the verdict form and returns the confirmation page and the fields
// that its form sends.
func (v *visitor) toConfirm(id string, fields url.Values) (answer, url.Values) {
	v.w.t.Helper()
	page := v.get("/effects/" + id)
	fields.Set("form", page.token(v.w.t, "/effects/"+id+"/review"))
	fields.Set("version", fmt.Sprint(v.w.effect(id).Version))
	a := v.send("/effects/"+id+"/review", fields)
	if a.status != http.StatusSeeOther || a.location() != "/effects/"+id+"/confirm" {
		v.w.t.Fatalf("review: %d %s", a.status, a.text())
	}
	confirm := v.get(a.location())
	out := url.Values{}
	for k, x := range fields {
		out[k] = x
	}
	out.Set("form", confirm.token(v.w.t, "/effects/"+id+"/decision"))
	return confirm, out
}

func verdict(v, note string) url.Values { return url.Values{"verdict": {v}, "note": {note}} }

func TestBC103_DoubleClickIsOneDecision(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.interrupted("run-d20", "send_payment", pay("Birch", "D-20", "20.00", "USD"))
	v := w.signedIn("petra")
	_, form := v.toConfirm(id, verdict("taken", "Portal shows it"))
	answers := make([]answer, 4)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i] = v.send("/effects/"+id+"/decision", form) })
	}
	wg.Wait()
	for i, a := range answers {
		if a.status != http.StatusSeeOther || !strings.HasPrefix(a.location(), "/effects/"+id) {
			t.Errorf("post %d: %d %s", i, a.status, a.text())
		}
	}
	if d := w.effect(id).Decisions; len(d) != 1 {
		t.Errorf("%d decisions", len(d))
	}
	if n := w.audited("effect.decide", "done", id); n != 1 {
		t.Errorf("%d audit lines", n)
	}
}

// audited counts audit lines about an effect.
func (w *world) audited(action, outcome, effect string) (n int) {
	w.t.Helper()
	err := w.db.Get(w.t.Context(), &n, `SELECT count(*) FROM audit WHERE action = $1 AND outcome = $2 AND subject = $3`, action, outcome, "effect:"+effect)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

func TestBC104_TheLoserIsToldWhoAndKeepsTheirText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.interrupted("run-d21", "send_payment", pay("Birch", "D-21", "20.00", "USD"))
	p, q := w.signedIn("petra"), w.signedIn("quentin")
	_, yes := p.toConfirm(id, verdict("taken", "Portal shows it"))
	_, no := q.toConfirm(id, verdict("not_taken", "I found nothing at all"))
	first := p.send("/effects/"+id+"/decision", yes)
	if first.status != http.StatusSeeOther {
		t.Fatalf("first: %d %s", first.status, first.text())
	}
	second := q.send("/effects/"+id+"/decision", no)
	if second.status != http.StatusConflict {
		t.Errorf("second: %d", second.status)
	}
	for _, want := range []string{"Petra Lind decided this already at", "it took effect", "I found nothing at all"} {
		if !strings.Contains(second.text(), want) {
			t.Errorf("the loser is not told %q:\n%s", want, second.text())
		}
	}
	if x := w.effect(id); x.State != "taken" || len(x.Decisions) != 1 {
		t.Errorf("state %s, %d decisions", x.State, len(x.Decisions))
	}
	if n := w.audited("effect.decide", "denied", id); n != 1 {
		t.Errorf("the denied attempt has %d audit lines", n)
	}
}

func TestBC105_BackAndResendChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.interrupted("run-d22", "send_payment", pay("Birch", "D-22", "20.00", "USD"))
	next := w.interrupted("run-d22b", "send_payment", pay("Birch", "D-22b", "20.00", "USD"))
	v := w.signedIn("petra")
	_, form := v.toConfirm(id, verdict("taken", "Portal shows it"))
	v.send("/effects/"+id+"/decision", form)
	if _, err := w.engine.Undo(t.Context(), w.petra, effects.Undo{EffectID: id, Note: "wrong one"}); err != nil {
		t.Fatal(err)
	}
	again := v.send("/effects/"+id+"/decision", form)
	if again.status != http.StatusSeeOther {
		t.Errorf("re-sent: %d", again.status)
	}
	if x := w.effect(id); x.State != "interrupted" || len(x.Decisions) != 2 {
		t.Errorf("the old form decided again: %s, %d acts", x.State, len(x.Decisions))
	}
	other := v.send("/effects/"+next+"/decision", form) // the used token on the card that is now at the top
	if x := w.effect(next); x.State != "interrupted" || other.status != http.StatusSeeOther {
		t.Errorf("a used token decided another effect: %s", x.State)
	}
	// Back shows what is decided, read-only.
	_, form = v.toConfirm(id, verdict("taken", "Portal shows it"))
	v.send("/effects/"+id+"/decision", form)
	if page := v.get("/effects/" + id); strings.Contains(page.body, `action="/effects/`+id+`/review"`) {
		t.Error("a decided effect still asks for a verdict")
	}
}

func TestBC106_TypedTextSurvivesAnExpiredSessionForItsPersonAlone(t *testing.T) {
	t.Parallel()
	for _, another := range []bool{false, true} {
		t.Run(fmt.Sprint("another person ", another), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			id := w.interrupted("run-d23", "send_payment", pay("Birch", "D-23", "20.00", "USD"))
			v := w.signedIn("petra")
			page := v.get("/effects/" + id)
			form := verdict("taken", strings.Repeat("Portal shows po_1. ", 33))
			form.Set("form", page.token(t, "/effects/"+id+"/review"))
			form.Set("version", fmt.Sprint(w.effect(id).Version))
			w.exec(`UPDATE sessions SET seen_at = seen_at - interval '70 minutes'`)
			sent := v.send("/effects/"+id+"/review", form)
			if sent.status != http.StatusSeeOther || !strings.HasPrefix(sent.location(), "/sign-in?next=%2Feffects%2F") {
				t.Fatalf("an expired session: %d %s", sent.status, sent.location())
			}
			if len(w.effect(id).Decisions) != 0 {
				t.Fatal("an expired session decided")
			}
			mail := "petra"
			if another {
				mail = "quentin"
			}
			in := v.send("/sign-in", url.Values{"email": {mail + "@example.com"}, "password": {password}, "next": {"/effects/" + id}})
			if in.location() != "/effects/"+id {
				t.Fatalf("after signing in: %s", in.location())
			}
			back := v.get(in.location())
			kept := strings.Contains(back.body, "Portal shows po_1. Portal shows po_1.")
			if kept == another {
				t.Errorf("the text is shown: %v", kept)
			}
			if !another && !strings.Contains(back.body, `value="taken" checked`) {
				t.Error("the choice is not filled in")
			}
			if w.effect(id).State != "interrupted" {
				t.Error("something was submitted")
			}
		})
	}
}

func TestBC107_AFindingMustBeNamedBeforeItIsDenied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.interrupted("run-d24", "send_payment", pay("Birch", "D-24", "310.00", "USD"))
	w.exec(`INSERT INTO evidence (id, effect_id, at, source, verdict, reference, seen)
		VALUES (gen_random_uuid(), $1::uuid, clock_timestamp(), 'look_up', 'taken', 'tr_552', 'tr_552: 310.00, final')`, id)
	v := w.signedIn("petra")
	confirm, form := v.toConfirm(id, verdict("not_taken", "It is not ours"))
	if !strings.Contains(confirm.text(), "tr_552") {
		t.Error("the confirmation does not name what was found")
	}
	a := v.send("/effects/"+id+"/decision", form)
	if a.status != http.StatusUnprocessableEntity || !strings.Contains(a.text(), "tr_552") || w.effect(id).State != "interrupted" {
		t.Fatalf("denied without a word about it: %d %s", a.status, w.effect(id).State)
	}
	form.Set("form", a.token(t, "/effects/"+id+"/decision"))
	form.Set("not_ours", "tr_552")
	if a = v.send("/effects/"+id+"/decision", form); a.status != http.StatusSeeOther {
		t.Fatalf("with it named: %d %s", a.status, a.text())
	}
	x := w.effect(id)
	if x.State != "cleared" || len(x.Evidence) == 0 || x.Evidence[0].Reference != "tr_552" || len(x.Attempts) != 1 {
		t.Errorf("%s; evidence %+v", x.State, x.Evidence)
	}
}

func TestBC108_HowItWasClosedIsToldApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, agent := w.begun("run-a", "send_payment", pay("Agent", "A", "1.00", "USD"))
	w.finish(agent, "taken", "po_a")
	late := w.interrupted("run-l", "send_payment", pay("Late", "L", "1.00", "USD"))
	w.finish(late, "taken", "po_l")
	person := w.interrupted("run-p", "send_payment", pay("Person", "P", "1.00", "USD"))
	w.decide(w.petra, effects.Decide{EffectID: person, Verdict: effects.VerdictTaken, Reference: "po_p"})
	v := w.signedIn("vera")
	for by, want := range map[string][2]string{"agent": {"to Agent for A", "By its agent"}, "late_agent": {"to Late for L", "By a late agent"}, "person": {"to Person for P", "by Petra Lind"}} {
		list := v.get("/?closed=" + by).text()
		if !strings.Contains(list, want[0]) || !strings.Contains(strings.ToLower(list), strings.ToLower(want[1])) {
			t.Errorf("closed=%s:\n%s", by, list)
		}
		for other, x := range map[string]string{"agent": "to Agent for A", "late_agent": "to Late for L", "person": "to Person for P"} {
			if other != by && strings.Contains(list, x) {
				t.Errorf("closed=%s lists %s", by, other)
			}
		}
	}
	for id, want := range map[string]string{agent: "Closed by its agent", late: "Closed by a late agent", person: "By Petra Lind at"} {
		if text := v.get("/effects/" + id).text(); !strings.Contains(text, want) {
			t.Errorf("the page does not say %q:\n%s", want, text)
		}
	}
	ada := w.signedIn("ada")
	if csv := ada.get("/audit.csv"); !strings.Contains(csv.body, "Petra Lind") || !strings.Contains(csv.body, "effect.decide") || strings.Contains(csv.body, "po_l") {
		t.Errorf("the export: %s", csv.body)
	}
}

func TestBC111_TheDangerousVerdictIsNeverTheDefault(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.interrupted("run-d27", "send_payment", pay("Birch", "D-27", "20.00", "USD"))
	w.exec(`INSERT INTO evidence (id, effect_id, at, source, verdict, reference, seen)
		VALUES (gen_random_uuid(), $1::uuid, clock_timestamp(), 'look_up', 'inconclusive', 'tr_9', 'tr_9 is pending, not final')`, id)
	v := w.signedIn("petra")
	page := v.get("/effects/" + id)
	if strings.Contains(page.body, `type="radio" name="verdict" value="taken" checked`) || strings.Contains(page.body, "checked") {
		t.Error("a verdict is chosen beforehand")
	}
	for _, want := range []string{"tr_9 is pending, not final", "An attempt may still send its request", "20.00 USD may leave again"} {
		if !strings.Contains(page.text(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if i, j := strings.Index(page.body, `value="stop"`), strings.Index(page.body, `value="not_taken"`); i < 0 || j < i {
		t.Error("the verdict that sends again does not come last")
	}
	// No address decides by being opened.
	for _, path := range []string{"/confirm", "/decision", "/undo", "/review"} {
		v.get("/effects/" + id + path)
	}
	if len(w.effect(id).Decisions) != 0 {
		t.Error("a link decided")
	}
}

func TestSecondPersonOnThePage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.interrupted("run-2p", "send_payment", pay("Birch", "2P", "20000.00", "USD"))
	p, q := w.signedIn("petra"), w.signedIn("quentin")
	confirm, form := p.toConfirm(id, verdict("taken", "Portal shows po_1"))
	if !strings.Contains(confirm.text(), "it waits until somebody else confirms it") {
		t.Error("the page does not say that a second person is needed")
	}
	if a := p.send("/effects/"+id+"/decision", form); a.location() != "/effects/"+id+"?done=waits" {
		t.Fatalf("first: %d %s", a.status, a.location())
	}
	if a := p.get("/effects/" + id + "/confirm?second=yes"); a.status != http.StatusSeeOther {
		t.Errorf("the first person may confirm their own verdict: %d", a.status)
	}
	second := q.get("/effects/" + id + "/confirm?second=yes")
	form = url.Values{"form": {second.token(t, "/effects/"+id+"/decision")}, "version": {fmt.Sprint(w.effect(id).Version)}, "verdict": {"taken"}, "second": {"yes"}}
	if a := q.send("/effects/"+id+"/decision", form); a.status != http.StatusUnprocessableEntity || w.effect(id).State != "interrupted" {
		t.Fatalf("without a note of their own: %d", a.status)
	} else {
		form.Set("form", a.token(t, "/effects/"+id+"/decision"))
	}
	form.Set("note", "I see it too")
	if a := q.send("/effects/"+id+"/decision", form); a.status != http.StatusSeeOther || w.effect(id).State != "taken" {
		t.Fatalf("second: %d %s %s", a.status, w.effect(id).State, a.text())
	}
}

func TestSendBackAndAcknowledge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.interrupted("run-sb", "send_payment", pay("Birch", "SB", "20000.00", "USD"))
	w.decide(w.petra, effects.Decide{EffectID: id, Verdict: effects.VerdictStop})
	q := w.signedIn("quentin")
	page := q.get("/effects/" + id)
	form := url.Values{"form": {page.token(t, "/effects/"+id+"/send-back")}, "version": {fmt.Sprint(w.effect(id).Version)}, "note": {"Look at the second account too"}}
	if a := q.send("/effects/"+id+"/send-back", form); a.status != http.StatusSeeOther || w.effect(id).Proposal != nil {
		t.Fatalf("send back: %d %s", a.status, a.text())
	}
	c := w.contradicted("run-c", pay("ACME", "C-1", "42.00", "USD"))
	page = q.get("/effects/" + c)
	form = url.Values{"form": {page.token(t, "/effects/"+c+"/acknowledge")}, "version": {fmt.Sprint(w.effect(c).Version)}, "note": {"Two payments, both ours"}, "recovery": {"yes"}}
	if a := q.send("/effects/"+c+"/acknowledge", form); a.status != http.StatusSeeOther {
		t.Fatalf("acknowledge: %d %s", a.status, a.text())
	}
	if k := w.effect(c).Contradictions[0]; k.Recovery != "yes" || k.AcknowledgedBy != "Quentin Osei" {
		t.Errorf("%+v", k)
	}
}

func TestUnsureIsKeptOnceAndDecidesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.interrupted("run-u", "send_payment", pay("Birch", "U", "20.00", "USD"))
	v := w.signedIn("petra")
	page := v.get("/effects/" + id)
	form := verdict("unsure", "The batch of 14:00 is pending")
	form.Set("form", page.token(t, "/effects/"+id+"/review"))
	form.Set("version", fmt.Sprint(w.effect(id).Version))
	form.Set("next_look", "2031-05-14T09:30")
	for range 2 {
		if a := v.send("/effects/"+id+"/review", form); a.status != http.StatusSeeOther {
			t.Fatalf("%d %s", a.status, a.text())
		}
	}
	x := w.effect(id)
	if x.State != "interrupted" || len(x.Evidence) != 1 || x.Evidence[0].Seen != "The batch of 14:00 is pending" || !x.Evidence[0].NextLook.Equal(time.Date(2031, 5, 14, 9, 30, 0, 0, time.UTC)) {
		t.Errorf("%s %+v", x.State, x.Evidence)
	}
	if text := v.get("/effects/" + id).text(); !strings.Contains(text, "Petra Lind looked: cannot tell") || !strings.Contains(text, "Look again 14 May 2031, 09:30:00 UTC") {
		t.Errorf("the page: %s", text)
	}
}
