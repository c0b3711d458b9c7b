package api

import (
	"os"
	"strings"
	"testing"
)

// The page for people names every route and every code, and no route that is gone.
func TestDocumentationNamesEveryRouteAndCode(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	known := map[string]bool{}
	for _, r := range routes {
		path, _ := openAPIPath(r.path)
		known[path] = true
		if !strings.Contains(page, path) {
			t.Errorf("docs/api.md does not name %s", path)
		}
	}
	for code := range kinds {
		if !strings.Contains(page, "`"+string(code)+"`") {
			t.Errorf("docs/api.md does not name the code %s", code)
		}
	}
	for code := range paymentKinds {
		if !strings.Contains(page, "`"+string(code)+"`") {
			t.Errorf("docs/api.md does not name the code %s", code)
		}
	}
	for word := range strings.FieldsFuncSeq(page, func(r rune) bool { return strings.ContainsRune(" `\n?(),.", r) }) {
		if strings.HasPrefix(word, "/v1/") && !known[word] {
			t.Errorf("docs/api.md names %s, which is not served", word)
		}
	}
}
