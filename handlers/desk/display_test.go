package desk_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/playwright-community/playwright-go"

	"quittance/reconcile/effects"
	"quittance/web/browsertest"
)

func TestBC139_MarkupFromOutsideIsText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const img, script = `<img src=x onerror=alert(1)>`, `"><script>alert(2)</script>`
	id := w.interrupted("run-"+script, "tool"+script, `{"memo":"`+img+`","url":"javascript:alert(1)","k\"><script>alert(2)</script>":"v"}`)
	v := w.signedIn("ada")
	w.decide(w.petra, effects.Decide{EffectID: id, Verdict: effects.VerdictTaken, Note: img + script, Result: []byte(`{"r":"` + img + `"}`)})
	if _, err := w.engine.AddEvidence(t.Context(), w.petra, effects.AddEvidence{EffectID: id, Seen: script + img}); err != nil {
		t.Fatal(err)
	}
	p := w.page(browsertest.Look{}, "ada", "/")
	p.On("dialog", func(d playwright.Dialog) { t.Errorf("a script ran: %s", d.Message()); _ = d.Dismiss() })
	for _, path := range []string{
		"/", "/?q=" + url.QueryEscape(script+img), "/effects/" + id, "/decided", "/runs", "/runs/" + w.runOf(id), "/audit", "/audit?subject=" + url.QueryEscape(script),
		"/?closed=person&tool=" + url.QueryEscape(script), "/nowhere/" + url.PathEscape(script), "/sign-in?next=" + url.QueryEscape("javascript:alert(1)"), "/tools", "/people", "/health",
	} {
		a := v.get(path)
		for _, bad := range []string{"<img src=x", "<script>alert", `href="javascript:`, "onerror=alert(1)>"} {
			if strings.Contains(a.body, bad) {
				t.Errorf("%s holds %q as markup", path, bad)
			}
		}
		if a.status == http.StatusSeeOther {
			continue
		}
		policy := a.header.Get("Content-Security-Policy")
		if strings.Contains(policy, "unsafe") || !strings.HasPrefix(policy, "default-src 'none'") || !strings.Contains(policy, "script-src 'self'") {
			t.Errorf("%s: policy %q", path, policy)
		}
		_, err := p.Goto(w.url + path)
		must(t, err)
	}
	if text := v.get("/effects/" + id).text(); !strings.Contains(text, "onerror=alert(1)") {
		t.Error("the text itself is not shown")
	}
}

// TestNothingInline: no page has a style, a script or a handler in its markup.
func TestNothingInline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.scene()
	v := w.signedIn("ada")
	inline := regexp.MustCompile(`(?i)<style|\sstyle=|<script(?:\s[^>]*)?>[^<]|\son[a-z]+=|javascript:`)
	for _, path := range []string{"/", "/effects/" + m["payment"], "/effects/" + m["second"], "/effects/" + m["contradicted"], "/effects/" + m["decided"], "/decided", "/runs", "/tools", "/audit", "/people", "/you", "/health", "/nowhere"} {
		if found := inline.FindString(v.get(path).body); found != "" {
			t.Errorf("%s: %q", path, found)
		}
	}
	if a := v.get("/"); len(a.body) > 100_000 {
		t.Errorf("the queue is %d bytes", len(a.body))
	}
}

func TestBC140_InvisibleCharactersAreMarked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.scene()
	rtl := w.interrupted("run-rtl", "send_payment", pay("acme\u202Eknab", "I-1", "5.00", "USD"))
	amount := w.interrupted("run-amt", "send_payment", pay("Plain", "I-2", "1\u2060000.00", "USD"))
	mixed := w.interrupted("run-mix", "send_payment", pay("p\u0430ypal", "I-3", "5.00", "USD"))
	arabic := w.interrupted("run-ar", "send_payment", pay("شركة الأمل", "I-4", "5.00", "USD"))
	v := w.signedIn("ada")
	for id, want := range map[string]string{rtl: "u202e", m["odd"]: "u200b", amount: "u2060", mixed: "mixes Latin and Cyrillic"} {
		page := v.get("/effects/" + id)
		if !strings.Contains(strings.ToLower(page.body), strings.ToLower(want)) || !strings.Contains(page.text(), "cannot be seen, or that look like others") {
			t.Errorf("%s is not marked, or there is no warning", want)
		}
		if strings.ContainsAny(page.body, "\u202e\u200b\u2060") {
			t.Errorf("%s: the character itself is on the page", want)
		}
	}
	for _, id := range []string{arabic, m["hebrew"]} {
		if page := v.get("/effects/" + id); strings.Contains(page.body, `class="odd"`) {
			t.Errorf("honest text is marked: %s", id)
		}
	}
	list := v.get("/")
	if n := strings.Count(list.text(), "hidden characters"); n != 4 {
		t.Errorf("%d rows of the queue warn, want 4", n)
	}
	for _, honest := range []string{"شركة الأمل", "דפוס העמק בע״מ", "東京運輸株式会社"} {
		if !strings.Contains(list.text(), honest) {
			t.Errorf("%s does not read normally", honest)
		}
	}
	w.decide(w.petra, effects.Decide{EffectID: rtl, Verdict: effects.VerdictTaken, Note: "acme\u202Eknab said so"})
	if a := v.get("/audit.csv"); strings.ContainsAny(a.body, "\u202e") || !strings.Contains(a.body, "acmeU+202Eknab") {
		t.Error("the export holds the character, or does not mark it")
	}
}

// BC-141 is about the finance export; the audit export makes cells harmless the same way.
func TestBC141_ExportedCellsAreHarmless(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	notes := []string{`=HYPERLINK("http://x.example","see")`, "@SUM(A1)", "+49 30 1", "-5.00", "\t=1"}
	for i, n := range notes {
		id := w.interrupted(fmt.Sprint("run-", i), "send_payment", pay("V", fmt.Sprint(i), "5.00", "USD"))
		w.decide(w.petra, effects.Decide{EffectID: id, Verdict: effects.VerdictTaken, Note: n + " ."})
	}
	a := w.signedIn("ada").get("/audit.csv?action=effect.decide")
	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	if err != nil || len(rows) != len(notes)+1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, r := range rows[1:] {
		if note := r[10]; !strings.HasPrefix(note, "'") {
			t.Errorf("%q would be taken for a formula", note)
		}
		if !strings.HasSuffix(r[1], "+00:00") {
			t.Errorf("a time without its offset: %s", r[1])
		}
	}
}

// No digit of a number is lost on the way to the page: it passes through no float.
func TestBC059_ThePageShowsEveryDigit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i, digits := range []string{"9007199254740993", "3141592653589793239"} {
		id := w.interrupted(fmt.Sprint("run-", i), "send_email", `{"order_id":`+digits+`,"to":"a@b.example"}`)
		if text := w.signedIn("vera").get("/effects/" + id).text(); !strings.Contains(text, digits) || strings.Contains(text, "9007199254740992") {
			t.Errorf("%s is not shown", digits)
		}
	}
}

func TestBC060_ThePageShowsPlainDigits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.interrupted("run-60", "send_email", `{"to":"a@b.example"}`)
	w.decide(w.petra, effects.Decide{EffectID: id, Verdict: effects.VerdictTaken, Note: "seen", Result: []byte(`{"transfer":820311904417712129,"count":7264515}`)})
	text := w.signedIn("vera").get("/effects/" + id).text()
	for _, digits := range []string{"820311904417712129", "7264515"} {
		if !strings.Contains(text, digits) {
			t.Errorf("%s is not shown", digits)
		}
	}
}

// A tool of which nothing can ever prove what became of a call says so where it is set up.
func TestBC084_TheToolsPageWarnsOfATool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	says(t, w.signedIn("vera").get("/tools"), "Blind: no look-up", "the downstream keeps no key of ours and cannot be asked")
}

func TestBC150_TimesNameTheirZone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.interrupted("run-t", "send_payment", pay("Birch", "T", "5.00", "USD"))
	w.exec(`ALTER TABLE evidence DISABLE TRIGGER USER`)
	w.exec(`INSERT INTO evidence (id, effect_id, at, source, verdict, seen)
		VALUES (gen_random_uuid(), $1::uuid, '2026-06-11T03:48:20Z', 'look_up', 'inconclusive', 'asked')`, id)
	p := w.page(browsertest.Look{Zone: "America/New_York"}, "petra", "/effects/"+id)
	row := p.Locator(".line li", playwright.PageLocatorOptions{HasText: "Asked the downstream"})
	day, err := p.Locator(".line .day").First().InnerText()
	must(t, err)
	if day != "Wednesday 10 June 2026, EDT" {
		t.Errorf("the day is %q", day)
	}
	text, err := row.Locator("time").InnerText()
	must(t, err)
	hover, err := row.Locator("time").GetAttribute("title")
	must(t, err)
	machine, err := row.Locator("time").GetAttribute("datetime")
	must(t, err)
	if text != "23:48:20" || hover != "2026-06-11 03:48:20 UTC" || machine != "2026-06-11T03:48:20Z" {
		t.Errorf("shown %q, hover %q, for programs %q", text, hover, machine)
	}
}

func TestBC151_DaysAreOfTheZoneInTheAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := map[string]string{"first": "2026-05-13T15:30:00Z", "second": "2026-05-16T15:30:00Z"}
	for name, when := range at {
		id := w.interrupted("run-"+name, "send_payment", pay("Vendor "+name, name, "5.00", "USD"))
		w.decide(w.petra, effects.Decide{EffectID: id, Verdict: effects.VerdictTaken})
		w.exec(`UPDATE effects SET changed_at = $2::timestamptz WHERE id = $1::uuid`, id, when)
	}
	link := "/?closed=person&from=2026-05-14&to=2026-05-16&zone=Asia%2FTokyo"
	for _, zone := range []string{"Asia/Tokyo", "Europe/Lisbon"} {
		v := w.visitor()
		v.send("/sign-in", url.Values{"email": {"petra@example.com"}, "password": {password}, "zone": {zone}})
		text := v.get(link).text()
		if !strings.Contains(text, "Vendor first") || strings.Contains(text, "Vendor second") || !strings.Contains(text, "Asia/Tokyo") {
			t.Errorf("in %s: %s", zone, text)
		}
	}
	w.exec(`ALTER TABLE audit DISABLE TRIGGER USER`)
	w.exec(`UPDATE audit SET at = '2026-05-13T15:30:00Z', note = 'inside' WHERE id = (SELECT min(id) FROM audit)`)
	if text := w.signedIn("ada").get("/audit?from=2026-05-14&to=2026-05-16&zone=Asia%2FTokyo").text(); !strings.Contains(text, "inside") {
		t.Error("the audit trail's days are not of the address's zone")
	}
}

// BC-153 speaks of 8 MB; the engine refuses a call of more than 1 MiB and says so, which the
// largest that is taken stands for here.
func TestBC153_LargeArgumentsStayOutOfTheList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 48 {
		w.interrupted(fmt.Sprint("run-", i), "send_email", fmt.Sprintf(`{"to":"u%d@example.com","subject":"x"}`, i))
	}
	var keys strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&keys, `,"key%d":%d`, i, i)
	}
	w.interrupted("run-keys", "send_email", `{"to":"k@example.com","subject":"x"`+keys.String()+`}`)
	huge := `{"to":"big@example.com","subject":"big","body":"` + strings.Repeat("long text ", 100_000) + `"}`
	big := w.interrupted("run-big", "send_email", huge)
	v := w.signedIn("petra")
	began := time.Now()
	list := v.get("/")
	if took := time.Since(began); took > 2*time.Second || len(list.body) > 100_000 {
		t.Errorf("the list took %v and is %d bytes", took, len(list.body))
	}
	page := v.get("/effects/" + big)
	if len(page.body) > 100_000 || !strings.Contains(page.text(), "first part of 1000 kB") {
		t.Errorf("the page is %d bytes", len(page.body))
	}
	if whole := v.get("/effects/" + big + "/arguments.json"); whole.body != huge || !strings.HasPrefix(whole.header.Get("Content-Disposition"), "attachment") {
		t.Errorf("the download is %d bytes of %d", len(whole.body), len(huge))
	}
	_, form := v.toConfirm(big, verdict("taken", "It arrived"))
	if a := v.send("/effects/"+big+"/decision", form); a.status != http.StatusSeeOther || w.effect(big).State != "taken" {
		t.Errorf("deciding it: %d", a.status)
	}
}

func TestBC155_LongNamesAreCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tool, run := strings.Repeat("t", 256), strings.Repeat("r", 512)
	id := w.interrupted(run, tool, `{"a":"`+strings.Repeat("x", 4000)+`"}`)
	// Names beyond what is stated are refused where they are given.
	if _, err := w.engine.Open(t.Context(), effects.Open{Account: w.account, RunID: strings.Repeat("r", 10_000), Agent: "a", Worker: "w", AttemptID: "1"}); err == nil {
		t.Error("a run of 10,000 characters was opened")
	}
	w.exec(`INSERT INTO people (name, email, roles) VALUES (repeat('Very long name ', 68), 'long@example.com', '{viewer}')`)
	for i := range 30 {
		w.interrupted(fmt.Sprint("run-", i), fmt.Sprint("tool-", i), `{}`)
	}
	v := w.signedIn("ada")
	list := v.get("/")
	if strings.Contains(list.body, ">"+run+"<") || !strings.Contains(list.body, `title="`+run+`"`) {
		t.Error("the long run is not cut, or its full text is not there on demand")
	}
	if !strings.Contains(list.body, `<option value="tool-29">`) || !strings.Contains(list.body, `list="tools"`) {
		t.Error("the filter does not offer the tools")
	}
	if text := v.get("/?tool=tool-7").text(); !strings.Contains(text, "run-7") || strings.Contains(text, "run-8 ") {
		t.Error("the filter does not filter")
	}
	for _, width := range []int{1280, 320} {
		p := w.page(browsertest.Look{Width: width, Height: 700}, "ada", "/")
		for _, path := range []string{"/", "/effects/" + id, "/runs", "/runs/" + w.runOf(id), "/people"} {
			goTo(t, w, p, path)
			fits(t, p)
		}
	}
}

// TestZoom: at 200 % (half the width) and with large text nothing is cut off.
func TestZoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.scene()
	p := w.page(browsertest.Look{Width: 640, Height: 430, Scale: 2}, "ada", "/")
	for _, path := range []string{"/", "/effects/" + m["payment"], "/audit"} {
		goTo(t, w, p, path)
		fits(t, p)
	}
}
