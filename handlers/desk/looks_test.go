package desk_test

import (
	"strings"
	"testing"

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
			p := (&world{t: t, url: w.url}).page(look, "ada", "/")
			goTo(t, w.world, p, "/")
			fits(t, p)
			picture(t, p, "looks-queue-"+name, true)
			for state, id := range m {
				goTo(t, w.world, p, "/effects/"+id)
				fits(t, p)
				if look.Width != 320 && (look.Width == 0 || !look.Dark) {
					accessible(t, p)
				}
				picture(t, p, "looks-"+strings.ReplaceAll(state, " ", "-")+"-"+name, true)
			}
			goTo(t, w.world, p, "/tools")
			fits(t, p)
			accessible(t, p)
			picture(t, p, "looks-tools-"+name, true)
		})
	}
}
