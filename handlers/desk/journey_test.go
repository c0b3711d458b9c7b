package desk_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/playwright-community/playwright-go"

	"quittance/web/browsertest"
)

// must ends the test on an error of the browser.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// page opens a signed-in window on a path.
func (w *world) page(look browsertest.Look, mail, path string) playwright.Page {
	w.t.Helper()
	p, err := browsertest.Browser(w.t, look).NewPage()
	must(w.t, err)
	p.On("console", func(m playwright.ConsoleMessage) {
		if m.Type() == "error" && !strings.Contains(m.Text(), "status of 4") {
			w.t.Errorf("the browser complains: %s", m.Text())
		}
	})
	p.On("pageerror", func(err error) { w.t.Errorf("a script failed: %v", err) })
	_, err = p.Goto(w.url + "/sign-in?next=" + path)
	must(w.t, err)
	must(w.t, p.GetByLabel("E-mail").Fill(mail+"@example.com"))
	must(w.t, p.GetByLabel("Password").Fill(password))
	must(w.t, p.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Sign in", Exact: new(true)}).Click())
	must(w.t, p.WaitForURL(regexp.MustCompile(regexp.QuoteMeta(w.url+path)+`(\?.*)?$`)))
	return p
}

func see(t testing.TB, p playwright.Page, text string) {
	t.Helper()
	err := p.GetByText(text).First().WaitFor()
	if err != nil {
		body, _ := p.Locator("body").InnerText()
		t.Fatalf("the page does not say %q:\n%s", text, body)
	}
}

// TestJourney is the main path, with and without scripts: sign in, read, decide,
// confirm, take back.
func TestJourney(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]browsertest.Look{"with scripts": {}, "without scripts": {NoScript: true}, "on a phone": {Width: 360, Height: 740}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.t = t
			id := w.interrupted("run-ap-771", "send_payment", pay("ACME Tools", "INV-9", "4200.00", "USD"))
			p := w.page(look, "petra", "/")
			see(t, p, "Pay 4200.00 USD to ACME Tools for INV-9")
			must(t, p.GetByRole("link", playwright.PageGetByRoleOptions{Name: "Pay 4200.00 USD"}).Click())
			see(t, p, "We do not know whether it happened.")
			must(t, p.GetByLabel("Yes, it took effect").Check())
			must(t, p.GetByLabel("What did you see").Fill("Bank portal shows po_8812, settled 14:02"))
			must(t, p.GetByLabel("Their reference").Fill("po_8812"))
			must(t, p.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Review"}).Click())
			must(t, p.WaitForURL("**/confirm"))
			see(t, p, "The agent is given the result and goes on.")
			if w.effect(id).State != "interrupted" {
				t.Fatal("looking at the confirmation page decided")
			}
			must(t, p.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Record this verdict"}).Click())
			see(t, p, "Agents do not see it yet")
			if v := w.effect(id); v.State != "taken" || v.Reference != "po_8812" || v.DecidedBy != "person" {
				t.Fatalf("decided: %s %s %s", v.State, v.Reference, v.DecidedBy)
			}
			must(t, p.GetByLabel("Why take it back?").Fill("Wrong invoice"))
			must(t, p.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Undo this decision"}).Click())
			see(t, p, "We do not know whether it happened.")
			if v := w.effect(id); v.State != "interrupted" {
				t.Fatalf("after undo: %s", v.State)
			}
		})
	}
}
