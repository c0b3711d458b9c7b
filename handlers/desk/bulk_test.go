package desk_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"quittance/reconcile/effects"
)

// until waits for a page to say something, which a job on the server brings about.
func (v *visitor) until(path, text string) answer {
	v.w.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		a := v.get(path)
		if strings.Contains(a.text(), text) {
			return a
		}
		if time.Now().After(deadline) {
			v.w.t.Fatalf("%s never says %q:\n%s", path, text, a.text())
		}
	}
}

func TestBC138_SelectionIsNamedAndChangedRowsAreLeftOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := make([]string, 4)
	for i := range ids {
		ids[i] = w.interrupted(fmt.Sprint("run-", i), "send_payment", pay(fmt.Sprint("Vendor ", i), fmt.Sprint("INV-", i), "10.00", "USD"))
	}
	v := w.signedIn("petra")
	list := v.get("/")
	form := url.Values{"form": {list.token(t, "/bulk")}, "what": {"chosen"}}
	for _, id := range ids[:3] {
		form.Add("effect", fmt.Sprintf("%s %d", id, w.effect(id).Version))
	}
	w.decide(w.quentin, effects.Decide{EffectID: ids[1], Verdict: effects.VerdictTaken}) // after the page was shown
	made := v.send("/bulk", form)
	set := made.location()
	if made.status != http.StatusSeeOther || !strings.HasPrefix(set, "/bulk/") {
		t.Fatalf("freezing: %d %s", made.status, made.text())
	}
	page := v.get(set)
	for _, want := range []string{"2 in the set", "20.00 USD", "Vendor 0", "Vendor 2", "it does not wait any more"} {
		if !strings.Contains(page.text(), want) {
			t.Errorf("the set does not say %q:\n%s", want, page.text())
		}
	}
	w.decide(w.quentin, effects.Decide{EffectID: ids[2], Verdict: effects.VerdictStop}) // after it was frozen
	order := url.Values{"form": {page.token(t, set+"/order")}, "name": {"Test"}, "verdict": {"taken"}, "note": {"All in the portal"}}
	if a := v.send(set+"/order", order); a.status != http.StatusSeeOther {
		t.Fatalf("ordering: %d %s", a.status, a.text())
	}
	v.until(set, "Finished")
	if x := w.effect(ids[0]); x.State != "taken" || x.Decisions[0].Person != "Petra Lind" || x.Decisions[0].Note != "Test: All in the portal" {
		t.Errorf("row 0: %s %+v", x.State, x.Decisions)
	}
	if x := w.effect(ids[2]); x.State != "cancelled" {
		t.Errorf("row 2 was decided over somebody else's decision: %s", x.State)
	}
	if x := w.effect(ids[3]); x.State != "interrupted" {
		t.Errorf("a row that was not chosen: %s", x.State)
	}
	after := v.get(set)
	if !strings.Contains(after.text(), "1 decided, 1 left out") {
		t.Errorf("the outcome is not told by row: %s", after.text())
	}
	if strings.Contains(v.get("/").body, " checked") {
		t.Error("rows are still chosen")
	}
	undo := url.Values{"form": {after.token(t, set+"/undo")}, "note": {"Wrong day"}}
	if a := v.send(set+"/undo", undo); a.status != http.StatusSeeOther {
		t.Fatalf("undo: %d %s", a.status, a.text())
	}
	v.until(set, "Taken back")
	if x := w.effect(ids[0]); x.State != "interrupted" {
		t.Errorf("after undo: %s", x.State)
	}
}

func TestBulkRefusesAnEmptyFilterAndUntypedNumbers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.many(23)
	w.interrupted("run-other", "send_payment", pay("Birch", "INV-1", "10.00", "USD"))
	v := w.signedIn("petra")
	if a := v.send("/bulk", url.Values{"form": {v.get("/").token(t, "/bulk")}, "what": {"all"}, "query": {"q="}}); a.status != http.StatusUnprocessableEntity {
		t.Errorf("an empty filter: %d", a.status)
	}
	made := v.send("/bulk", url.Values{"form": {v.get("/?tool=send_email").token(t, "/bulk")}, "what": {"all"}, "query": {"tool=send_email"}})
	set := made.location()
	page := v.get(set)
	if !strings.Contains(page.text(), "23 in the set") {
		t.Fatalf("the set: %s", page.text())
	}
	order := url.Values{"form": {page.token(t, set+"/order")}, "name": {"Mail"}, "verdict": {"stop"}, "note": {"Provider was down"}}
	refused := v.send(set+"/order", order)
	if refused.status != http.StatusUnprocessableEntity || !strings.Contains(refused.body, "Provider was down") {
		t.Fatalf("an untyped number: %d", refused.status)
	}
	order.Set("form", refused.token(t, set+"/order"))
	order.Set("typed", "23")
	q := w.signedIn("quentin")
	if a := q.send(set+"/order", order); a.status != http.StatusForbidden {
		t.Errorf("another person's session: %d", a.status)
	}
	if a := v.send(set+"/order", order); a.status != http.StatusSeeOther {
		t.Fatalf("a typed number: %d %s", a.status, a.text())
	}
	v.until(set, "23 of 23 are through: 23 decided")
	if a := v.send(set+"/order", order); a.status != http.StatusSeeOther || a.location() != set {
		t.Errorf("sent twice: %d", a.status)
	}
}
