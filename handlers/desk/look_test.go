package desk_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/playwright-community/playwright-go"

	"quittance/web/browsertest"
)

// picture keeps a picture of the page where QUITTANCE_PICTURES says, for people to
// look at; the tests below assert what can be asserted of it.
func picture(t testing.TB, p playwright.Page, name string, whole bool) {
	t.Helper()
	dir := os.Getenv("QUITTANCE_PICTURES")
	if dir == "" {
		return
	}
	_, err := p.Screenshot(playwright.PageScreenshotOptions{Path: new(filepath.Join(dir, name+".png")), FullPage: &whole})
	must(t, err)
}

// fits fails when the page can be scrolled sideways, and when a row of a phone's list
// leaves the words of what was attempted less than most of its width.
func fits(t testing.TB, p playwright.Page) {
	t.Helper()
	wide, err := p.Evaluate(`() => {
		const over = document.documentElement.scrollWidth - document.documentElement.clientWidth;
		if (over <= 0) return "";
		const out = [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && getComputedStyle(e).position !== "absolute");
		return over + " px: " + out.slice(0, 4).map(e => e.tagName + "." + e.className).join(", ");
	}`)
	must(t, err)
	if wide != "" {
		t.Errorf("%s is wider than the window by %v", p.URL(), wide)
	}
	narrow, err := p.Evaluate(`() => innerWidth > 400 ? 0 : [...document.querySelectorAll("td.what-cell")]
		.filter(c => c.getBoundingClientRect().width < 0.7 * c.parentElement.getBoundingClientRect().width).length`)
	must(t, err)
	if narrow != 0 {
		t.Errorf("%s leaves the words of %v rows too little room", p.URL(), narrow)
	}
}

// accessible fails on anything axe-core objects to.
func accessible(t testing.TB, p playwright.Page) {
	t.Helper()
	_, err := p.Evaluate(browsertest.Axe(t))
	must(t, err)
	found, err := p.Evaluate(`async () => {
		const r = await axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]});
		return r.violations.map(v => v.id + ": " + v.help + " at " + v.nodes.slice(0, 3).map(n => n.target.join(" ") + " " + (n.any[0]?.message ?? "")).join(" | "));
	}`)
	must(t, err)
	for _, v := range found.([]any) {
		t.Errorf("%s: %v", p.URL(), v)
	}
}

func goTo(t testing.TB, w *world, p playwright.Page, path string) {
	t.Helper()
	r, err := p.Goto(w.url + path)
	must(t, err)
	if r.Status() != 200 {
		t.Errorf("%s: %d", path, r.Status())
	}
}

// TestPages looks at every page wide and narrow, light and dark: it fits, and axe-core
// has nothing to object.
func TestPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.scene()
	pages := []struct{ name, path string }{
		{"queue", "/"}, {"queue-filter", "/?filters=open&state=overdue"}, {"effect", "/effects/" + m["payment"]}, {"held", "/effects/" + m["held"]},
		{"second", "/effects/" + m["second"]}, {"contradiction", "/effects/" + m["contradicted"]}, {"hold", "/effects/" + m["decided"]}, {"odd", "/effects/" + m["odd"]},
		{"confirm", "/effects/" + m["second"] + "/confirm?second=yes"}, {"hebrew", "/effects/" + m["hebrew"]}, {"closed", "/?closed=person"},
		{"decided", "/decided"}, {"runs", "/runs"}, {"run", "/runs/" + w.runOf(m["payment"])}, {"tools", "/tools"}, {"audit", "/audit"}, {"people", "/people"},
		{"you", "/you"}, {"health", "/health"},
	}
	for name, look := range map[string]browsertest.Look{
		"wide": {}, "dark": {Dark: true}, "phone": {Width: 360, Height: 760, Scale: 2}, "phone-dark": {Width: 360, Height: 760, Dark: true, Scale: 2}, "narrow": {Width: 320, Height: 640},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := (&world{t: t, url: w.url}).page(look, "ada", "/")
			for _, x := range pages {
				goTo(t, w, p, x.path)
				fits(t, p)
				if look.Width != 320 && (look.Width == 0 || !look.Dark) { // each scheme and each layout once
					accessible(t, p)
				}
				picture(t, p, x.name+"-"+name, name != "wide")
			}
		})
	}
}

// TestFewAndMany: an empty queue says that the machine lives; one row and many fit too.
func TestFewAndMany(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.page(browsertest.Look{}, "petra", "/")
	see(t, p, "Nothing waits for a person")
	see(t, p, "Checked")
	accessible(t, p)
	picture(t, p, "empty", false)
	w.interrupted("run-ap-1", "send_payment", pay("Birch Supply", "INV-1", "20.00", "USD"))
	goTo(t, w, p, "/")
	picture(t, p, "one", false)
	w.seed(1000, 900)
	goTo(t, w, p, "/")
	see(t, p, "Next page")
	fits(t, p)
	picture(t, p, "many", true)
	goTo(t, w, p, "/sign-in")
	out := browsertest.Browser(t, browsertest.Look{})
	door, err := out.NewPage()
	must(t, err)
	goTo(t, w, door, "/sign-in")
	accessible(t, door)
	picture(t, door, "sign-in", false)
}
