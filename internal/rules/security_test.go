package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	namedTest = regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	anyTest   = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
)

// What SECURITY.md says is shown by tests that exist, and it names every fuzz target.
func TestSecurityIsShownByTests(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	exist := map[string]bool{}
	files(t, func(path string, text []byte) {
		if strings.HasSuffix(path, "_test.go") {
			for _, m := range anyTest.FindAllSubmatch(text, -1) {
				exist[string(m[1])] = true
			}
		}
	})
	named := map[string]bool{}
	for _, m := range namedTest.FindAllSubmatch(page, -1) {
		name := string(m[1])
		named[name] = true
		if !exist[name] {
			t.Errorf("there is no test %s", name)
		}
	}
	if len(named) < 30 {
		t.Errorf("only %d tests are named", len(named))
	}
	for name := range exist {
		if strings.HasPrefix(name, "Fuzz") && !named[name] {
			t.Errorf("SECURITY.md does not name %s", name)
		}
	}
}
