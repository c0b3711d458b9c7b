package public_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/playwright-community/playwright-go"

	"quittance/web/browsertest"
)

// A receipt fits a narrow phone, light and dark, has nothing that axe-core objects to, and
// prints.
func TestReceiptsFit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, at := w.order("usd", "100000000000000000000000000000000000")
	w.arrive(p, "100000000000000000000000000000000000")
	w.paidOut(w.arrive(p, "99999999999999999999999999999999999").Refund.ID)
	w.arrive(p, "1200")
	_, empty := w.order("jpy", "6400")
	for name, look := range map[string]browsertest.Look{"narrow": {Width: 320, Height: 640}, "narrow-dark": {Width: 320, Height: 640, Dark: true}, "wide": {}} {
		page, err := browsertest.Browser(t, look).NewPage()
		w.must(err)
		for what, path := range map[string]string{"paid": at, "nothing": empty, "none": "/r/nothing"} {
			_, err := page.Goto(w.url + path)
			w.must(err)
			over, err := page.Evaluate(`() => document.documentElement.scrollWidth - document.documentElement.clientWidth`)
			w.must(err)
			if n, _ := over.(int); n > 0 {
				t.Errorf("%s, %s: %d px too wide", what, name, n)
			}
			_, err = page.Evaluate(browsertest.Axe(t))
			w.must(err)
			found, err := page.Evaluate(`async () => (await axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]})).violations.map(v => v.id + ": " + v.help)`)
			w.must(err)
			for _, v := range found.([]any) {
				t.Errorf("%s, %s: %v", what, name, v)
			}
			if dir := os.Getenv("QUITTANCE_PICTURES"); dir != "" {
				_, err := page.Screenshot(playwright.PageScreenshotOptions{Path: new(filepath.Join(dir, "receipt-"+what+"-"+name+".png")), FullPage: new(true)})
				w.must(err)
			}
		}
		if name == "wide" {
			w.must(page.EmulateMedia(playwright.PageEmulateMediaOptions{Media: playwright.MediaPrint}))
			seen, err := page.Locator("h1").IsVisible()
			w.must(err)
			if !seen {
				t.Error("nothing is printed")
			}
		}
	}
}
