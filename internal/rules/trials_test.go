package rules

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	trialRow  = regexp.MustCompile(`(?m)^\| (BC-\d{3}) \| ([a-z-]+) \| (.*) \| (.*) \|$`)
	trialTest = regexp.MustCompile("`(TestBC\\d{3}_\\w+)`")
	trialFunc = regexp.MustCompile(`(?m)^func (TestBC\d{3}_\w+)\(`)
)

// docs/trials.md has every trial once, each proven by tests that exist and carry its id, or
// deferred; and every test that carries an id is in its row.
func TestTrialsAreProvenOrDeferred(t *testing.T) {
	t.Parallel()
	var trials []struct{ ID, Kind string }
	text, err := os.ReadFile(filepath.Join(root, "testdata", "cases.json"))
	if err == nil {
		err = json.Unmarshal(text, &trials)
	}
	if err != nil || len(trials) == 0 {
		t.Fatalf("%d trials, %v", len(trials), err)
	}
	table, err := os.ReadFile(filepath.Join(root, "docs", "trials.md"))
	if err != nil {
		t.Fatal(err)
	}
	exist := trialTests(t)
	rows, named := map[string][]string{}, map[string]bool{}
	for _, row := range trialRow.FindAllStringSubmatch(string(table), -1) {
		id := row[1]
		if rows[id] != nil {
			t.Errorf("%s is in the table twice", id)
		}
		rows[id] = row
		names := trialTest.FindAllStringSubmatch(row[3], -1)
		if len(names) == 0 && !strings.HasPrefix(row[4], "deferred: ") {
			t.Errorf("%s is neither proven nor deferred", id)
		}
		for _, n := range names {
			named[n[1]] = true
			if !exist[n[1]] {
				t.Errorf("%s: there is no test %s", id, n[1])
			}
			if !strings.HasPrefix(n[1], "Test"+strings.ReplaceAll(id, "-", "")+"_") {
				t.Errorf("%s names the test of another trial, %s", id, n[1])
			}
		}
	}
	for name := range exist {
		if !named[name] {
			t.Errorf("the table does not name %s", name)
		}
	}
	for _, c := range trials {
		if row := rows[c.ID]; row == nil || row[2] != c.Kind {
			t.Errorf("%s, %s, is not in the table", c.ID, c.Kind)
		}
	}
	if len(rows) != len(trials) {
		t.Errorf("%d rows for %d trials", len(rows), len(trials))
	}
}

// trialTests are the tests of the tree that carry a trial's id.
func trialTests(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	files(t, func(path string, text []byte) {
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, m := range trialFunc.FindAllSubmatch(text, -1) {
			found[string(m[1])] = true
		}
	})
	return found
}
