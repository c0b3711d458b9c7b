package desk_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"quittance/ledger/queue"
	"quittance/reconcile/effects"
)

var rowsOf = regexp.MustCompile(`data-row="([0-9a-f-]{36})"`)

func TestBC135_PagesNeitherSkipNorRepeat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var order []string
	for i := range 2*50 + 15 {
		order = append(order, w.interrupted(fmt.Sprint("run-", i), "send_email", fmt.Sprintf(`{"to":"u%d@example.com","subject":"x"}`, i)))
	}
	v := w.signedIn("petra")
	first := v.get("/")
	next := regexp.MustCompile(`href="([^"]+)" rel="next"`)
	link := func(a answer) string {
		m := next.FindStringSubmatch(a.body)
		if m == nil {
			return ""
		}
		return strings.ReplaceAll(m[1], "&amp;", "&")
	}
	seen := map[string]int{}
	collect := func(a answer) (ids []string) {
		for _, m := range rowsOf.FindAllStringSubmatch(a.body, -1) {
			ids = append(ids, m[1])
			seen[m[1]]++
		}
		return ids
	}
	page1 := collect(first)
	for _, id := range page1 { // everything on page 1 is decided before page 2 is opened
		w.decide(w.quentin, effects.Decide{EffectID: id, Verdict: effects.VerdictTaken})
	}
	late := w.interrupted("run-late", "send_email", `{"to":"late@example.com","subject":"x"}`)
	second := v.get(link(first))
	if got := collect(second); got[0] != order[50] || len(got) != 50 {
		t.Errorf("page 2 begins with row %s, want %s (%d rows)", got[0], order[50], len(got))
	}
	collect(v.get(link(second)))
	for _, id := range append(order, late) {
		if seen[id] != 1 {
			t.Errorf("%s was shown %d times", id, seen[id])
		}
	}
}

// TestSumsAreMaintained: whatever happens to effects, the maintained sums equal a count.
func TestSumsAreMaintained(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scene()
	check := func(when string) {
		t.Helper()
		kept, err := queue.Totals(t.Context(), w.db)
		if err != nil {
			t.Fatal(err)
		}
		var counted []queue.Total
		err = w.db.Select(t.Context(), &counted, `
			SELECT COALESCE(currency, '') AS currency, COALESCE(decimals, 0) AS decimals, count(*) AS effects, COALESCE(sum(amount), 0)::text AS amount
			FROM effects WHERE state IN ('interrupted', 'held') OR contradictions > 0 GROUP BY 1, 2 ORDER BY 3 DESC, 1`)
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(kept) != fmt.Sprint(counted) {
			t.Errorf("%s: kept %v, counted %v", when, kept, counted)
		}
		var wrong int
		err = w.db.Get(t.Context(), &wrong, `
			SELECT count(*) FROM effects e FULL JOIN waiting w ON w.effect_id = e.id
			WHERE (e.waiting_since IS NULL) <> (w.effect_id IS NULL) OR w.since <> e.waiting_since OR w.state <> e.state
				OR w.contradicted <> (e.contradictions > 0) OR w.second <> (e.proposal IS NOT NULL) OR w.early <> e.early`)
		if err != nil || wrong != 0 {
			t.Errorf("%s: %d rows of the queue differ from their effects, %v", when, wrong, err)
		}
	}
	check("after the scene")
	a := w.interrupted("run-s1", "send_payment", pay("Sum", "1", "77.00", "USD"))
	check("one more")
	w.decide(w.petra, effects.Decide{EffectID: a, Verdict: effects.VerdictStop})
	check("decided")
	if _, err := w.engine.Undo(t.Context(), w.petra, effects.Undo{EffectID: a, Note: "no"}); err != nil {
		t.Fatal(err)
	}
	check("undone")
	w.finish(a, "taken", "po_late")
	check("closed by a late agent")
}

func TestQueueFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.scene()
	v := w.signedIn("vera")
	for filter, want := range map[string][]string{
		"tool=send_email":             {"email"},
		"q=tool:send_email":           {"email"},
		"agent=nobody":                {},
		"run=run-ap-803":              {"euro"},
		"key=Birch+Supply%2FINV-2041": {"payment"},
		"q=inv-2041":                  {"payment"},
		"q=Birch+supply":              {"payment"},
		"q=birch+lindholm":            {},
		"state=held":                  {"held"},
		"state=second":                {"second"},
		"state=contradicted":          {"contradicted"},
		"state=overdue":               {"payment"},
		"age=1h":                      {"payment"},
		"age=50m":                     {"payment", "email"},
		"currency=JPY":                {"yen"},
		"currency=USD&least=30000":    {"payment", "second"},
		"currency=USD&least=1,118.01&most=1118.01": {"held"},
		"q=amount:%3E30000+currency:USD":           {"payment", "second"},
	} {
		a := v.get("/?" + filter)
		got := map[string]bool{}
		for _, id := range rowsOf.FindAllStringSubmatch(a.body, -1) {
			got[id[1]] = true
		}
		for _, name := range want {
			if !got[m[name]] {
				t.Errorf("%s does not find %s", filter, name)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s finds %d rows, want %d", filter, len(got), len(want))
		}
	}
	for _, bad := range []string{"least=30000", "currency=USD&least=1.005", "state=odd", "age=soon", "currency=USD&least=abc"} {
		if a := v.get("/?" + bad); a.status != 422 || !strings.Contains(a.body, `role="alert"`) {
			t.Errorf("%s: %d", bad, a.status)
		}
	}
	if text := v.get("/?cursor=nonsense").text(); !strings.Contains(text, "not one that this server gave") {
		t.Errorf("a made-up cursor: %s", text)
	}
}

var (
	badgeOf = regexp.MustCompile(`(?s)<span class="state is-[a-z]+">.*?</svg>\s*([^<]+?)\s*</span>`)
	struck  = regexp.MustCompile(`<s class="money">.*?1,118\.01`)
)

// TestABadgeSaysTheSameEverywhere: an effect's row and its own page have one word for
// how it stands.
func TestABadgeSaysTheSameEverywhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.scene()
	v := w.signedIn("vera")
	list := v.get("/").body
	for name, want := range map[string]string{
		"contradicted": "Contradiction", "second": "Second person", "held": "Held, not started", "payment": "Not known",
	} {
		_, row, _ := strings.Cut(list, `data-row="`+m[name]+`"`)
		_, page, _ := strings.Cut(v.get("/effects/"+m[name]).body, "<h1>")
		for where, html := range map[string]string{"row": row, "page": page} {
			if b := badgeOf.FindStringSubmatch(html); b == nil || b[1] != want {
				t.Errorf("%s, %s: %q, want %q", name, where, b, want)
			}
		}
	}
}

// TestTheSameAsAnotherIsNoSecondPayment: its amount is struck wherever it stands.
func TestTheSameAsAnotherIsNoSecondPayment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.scene()
	w.decide(w.petra, effects.Decide{EffectID: m["held"], Verdict: effects.VerdictSameAs, SameAs: w.effect(m["held"]).Overlaps[0].EffectID})
	v := w.signedIn("vera")
	for _, path := range []string{"/effects/" + m["held"], "/decided", "/?closed=person", "/runs/" + w.runOf(m["held"])} {
		if a := v.get(path); !struck.MatchString(a.body) || !strings.Contains(a.text(), "Same as another") {
			t.Errorf("%s shows it as a payment", path)
		}
	}
	if struck.MatchString(v.get("/effects/" + m["payment"]).body) {
		t.Error("a payment is struck")
	}
}

// TestAListHoldsWhatItsFilterSays: it never shows a filter that it did not apply.
func TestAListHoldsWhatItsFilterSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, tool := range []string{"send_payment", "send_email"} {
		_, id := w.begun("run-"+tool, tool, `{"to":"`+tool+`","subject":"x","vendor":"`+tool+`","invoice":"1","amount":"1.00","currency":"USD"}`)
		w.finish(id, "taken", "")
	}
	v := w.signedIn("vera")
	if text := v.get("/?closed=agent&tool=send_email").text(); !strings.Contains(text, "to send_email") || strings.Contains(text, "to send_payment") {
		t.Errorf("closed by agents, of one tool: %s", text)
	}
	if text := v.get("/?closed=agent&from=2020-01-01&to=2020-01-02").text(); !strings.Contains(text, "Nothing was closed like that") {
		t.Errorf("closed by agents, years ago: %s", text)
	}
	if a := v.get("/?closed=agent&run=run-send_email"); a.status != 422 || !strings.Contains(a.text(), "clear the rest") {
		t.Errorf("closed, by what cannot be filtered: %d", a.status)
	}
	for _, odd := range []string{"/runs?run=%00", "/runs?agent=%ff", "/audit?subject=%00&zone=%00", "/?q=%00", "/runs?cursor=%00"} {
		if a := v.get(odd); a.status >= 500 {
			t.Errorf("%s: %d", odd, a.status)
		}
	}
}
