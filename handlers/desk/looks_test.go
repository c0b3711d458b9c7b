package desk_test

import (
	"strings"
	"testing"

	"github.com/playwright-community/playwright-go"

	"quittance/web/browsertest"
)

// TestLooks looks at the page of every state that looking up leaves, and at the tools page.
func TestLooks(t *testing.T) {
	t.Parallel()
	w := newLooked(t)
	m := w.looks()
	for name, look := range map[string]browsertest.Look{
		"wide": {}, "dark": {Dark: true}, "phone": {Width: 360, Height: 760, Scale: 2}, "phone-dark": {Width: 360, Height: 760, Dark: true, Scale: 2}, "narrow": {Width: 320, Height: 640},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check := look.Width != 320 && (look.Width == 0 || !look.Dark) // each scheme and each layout once
			p := (&world{t: t, url: w.url}).page(look, "ada", "/")
			goTo(t, w.world, p, "/")
			fits(t, p)
			picture(t, p, "looks-queue-"+name, true)
			for state, id := range m {
				goTo(t, w.world, p, "/effects/"+id)
				fits(t, p)
				if check && (name == "wide" || state == "not found" || state == "denied") { // what they have in common was looked at once
					accessible(t, p)
				}
				picture(t, p, "looks-"+strings.ReplaceAll(state, " ", "-")+"-"+name, true)
			}
			// With everything opened that can be.
			goTo(t, w.world, p, "/effects/"+m["double"])
			for _, choice := range []string{"Yes, it took effect", "No, send it again"} {
				must(t, p.GetByLabel(choice).Check())
				_, err := p.Evaluate(`() => document.querySelectorAll("main details").forEach(d => d.open = true)`)
				must(t, err)
				fits(t, p)
				if check {
					accessible(t, p)
				}
				picture(t, p, "looks-open-"+choice[:2]+"-"+name, true)
			}
			goTo(t, w.world, p, "/tools")
			fits(t, p)
			_, err := p.GetByLabel("Tool").SelectOption(playwright.SelectOptionValues{Values: &[]string{"wire"}})
			must(t, err)
			must(t, p.GetByLabel("Business key, whole").Fill("O-31"))
			must(t, p.GetByRole("button", playwright.PageGetByRoleOptions{Name: "Test it"}).Click())
			see(t, p, "the latest call with this key")
			fits(t, p)
			if check {
				accessible(t, p)
			}
			picture(t, p, "looks-tools-"+name, true)
		})
	}
}
