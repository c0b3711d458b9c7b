package desk

import (
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzFilter: what the search box and the filter are read as is what their own address says
// again, so that a link to a list shows the same list; and all of it can be stored.
func FuzzFilter(f *testing.F) {
	for _, q := range []string{
		"", "tool:send_payment amount:>1000 currency:usd", "amount:>=1,000.50 amount:<5", "amount:7", "tool:>= run:", "key:a:b:c", "is:held state:overdue", "age:90m  \x00\xff",
		"Ǆ currency:ŉß", "a\u2003b closed:person",
	} {
		f.Add(q, "tool", "run-1 ", "2026-02-30", "Europe/Lisbon")
	}
	f.Add("'; DROP TABLE effects; --", "%_\\", "\u202e", "0000-00-00", "../../etc/passwd")
	f.Fuzz(func(t *testing.T, q, tool, run, from, zone string) {
		first := parseFilter(url.Values{"q": {q}, "tool": {tool}, "run": {run}, "from": {from}, "zone": {zone}, "currency": {tool}, "least": {run}}, time.UTC)
		address := first.values()
		for name, list := range address {
			if len(list) != 1 || !utf8.ValidString(list[0]) || strings.ContainsRune(list[0], 0) {
				t.Fatalf("%s is %q", name, list)
			}
		}
		read, err := url.ParseQuery(address.Encode())
		if err != nil {
			t.Fatal(err)
		}
		again := parseFilter(read, time.UTC)
		if first.from != "" && first.zone.String() != again.zone.String() {
			t.Fatalf("the days of %s are read in %s", first.zone, again.zone)
		}
		again.zone = first.zone // another pointer; and without days nobody's
		if first != again {
			t.Fatalf("the address of\n%+v shows\n%+v", first, again)
		}
		if first.empty() != again.empty() {
			t.Fatal("one of them is empty")
		}
		_, _, problem := first.days()
		if _, err := time.Parse(time.DateOnly, first.from); first.from != "" && (err != nil) != (problem != "") {
			t.Fatalf("the day %q: %q", first.from, problem)
		}
	})
}
