package effects

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	store "quittance/ledger/effects"
)

var update = flag.Bool("update", false, "write the parts of docs/state_machine.md that are made from the program")

const document = "../../docs/state_machine.md"

// TestStateMachineDocumentIsCurrent compares the document with the program. Run it
// with -update after a change of the table.
func TestStateMachineDocumentIsCurrent(t *testing.T) {
	t.Parallel()
	have, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	want := have
	for name, part := range map[string]string{"table": tableText(), "moves": movesText(t), "reasons": reasonsText()} {
		if want, err = replacePart(want, name, part); err != nil {
			t.Fatal(err)
		}
	}
	if bytes.Equal(have, want) {
		return
	}
	if !*update {
		t.Fatal("docs/state_machine.md is not what the program does: go test ./reconcile/effects -run StateMachineDocument -update")
	}
	if err := os.WriteFile(document, want, 0o644); err != nil {
		t.Fatal(err)
	}
}

// replacePart puts text between the two comments that mark a part.
func replacePart(doc []byte, name, text string) ([]byte, error) {
	begin, end := fmt.Sprintf("<!-- %s: made from the program -->\n", name), fmt.Sprintf("<!-- end of %s -->\n", name)
	before, rest, ok := bytes.Cut(doc, []byte(begin))
	_, after, ok2 := bytes.Cut(rest, []byte(end))
	if !ok || !ok2 {
		return nil, fmt.Errorf("%s has no part %q", document, name)
	}
	return slices.Concat(before, []byte(begin), []byte(text), []byte(end), after), nil
}

func tableText() string {
	var b strings.Builder
	b.WriteString("| row | from | event | guard | to | also |\n|---|---|---|---|---|---|\n")
	for _, r := range table {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", r.id, fromText(r.from), r.kind, r.when, r.to, r.also)
	}
	b.WriteString("| Z | any | finish, look-up | no row above | unchanged | evidence appended |\n")
	b.WriteString("| Z | any | any other | no row above | unchanged | refused |\n")
	return b.String()
}

func fromText(from []State) string {
	if len(from) == len(store.States) {
		return "any"
	}
	var words []string
	for _, s := range from {
		words = append(words, stateText(s))
	}
	return strings.Join(words, ", ")
}

func stateText(s State) string {
	if s == None {
		return "(none)"
	}
	return string(s)
}

// movesText lists the states that may follow each.
func movesText(t *testing.T) string {
	next := map[State]map[State]bool{}
	eachPair(t, true, func(p pair) string {
		if next[p.f.State] == nil {
			next[p.f.State] = map[State]bool{}
		}
		next[p.f.State][p.m.To] = p.m.To != p.f.State
		return ""
	})
	var b strings.Builder
	b.WriteString("| state | may be followed by |\n|---|---|\n")
	for _, s := range append([]State{None}, store.States...) {
		var words []string
		for _, to := range store.States {
			if next[s][to] {
				words = append(words, stateText(to))
			}
		}
		if len(words) == 0 {
			words = []string{"nothing"}
		}
		fmt.Fprintf(&b, "| %s | %s |\n", stateText(s), strings.Join(words, ", "))
	}
	return b.String()
}

// reasonsText lists why an effect may be in a state.
func reasonsText() string {
	var b strings.Builder
	b.WriteString("| state | why |\n|---|---|\n")
	for _, s := range store.States {
		if whys := store.WhysOf[s]; len(whys) > 0 {
			words := make([]string, len(whys))
			for i, w := range whys {
				words[i] = "`" + string(w) + "`"
			}
			fmt.Fprintf(&b, "| %s | %s |\n", s, strings.Join(words, ", "))
		}
	}
	return b.String()
}

// What the columns say in words is what the rows do.
func TestTableWordsAreTrue(t *testing.T) {
	t.Parallel()
	type done struct{ contradiction, withdrawn, used, stale bool }
	did, rows := map[string]*done{}, map[string]row{}
	for _, r := range table {
		rows[r.id], did[r.id] = r, &done{}
		if r.to == "" {
			t.Errorf("row %s does not say where it leads", r.id)
		}
		if r.guard != nil && r.when == "" {
			t.Errorf("row %s has a guard without words", r.id)
		}
		if strings.ContainsAny(r.when+r.to+r.also, "|\n") {
			t.Errorf("row %s breaks the document's table", r.id)
		}
	}
	eachPair(t, true, func(p pair) string {
		if p.m.Row == "Z" {
			return ""
		}
		r, d := rows[p.m.Row], did[p.m.Row]
		d.contradiction = d.contradiction || p.m.Contradiction != ""
		d.withdrawn = d.withdrawn || p.f.State == Cleared && anyOf(p.m.To, Interrupted, Held)
		d.used = d.used || p.m.Use && !p.f.Used
		d.stale = d.stale || p.m.Kept && p.e.Kind == KFinish && (p.e.Earlier || p.e.Stray)
		if to := toWords(p); to != "" && !slices.ContainsFunc(allowedWords(r), func(w string) bool { return w == to }) {
			return "the words say otherwise: " + to
		}
		return ""
	})
	for id, d := range did {
		also := rows[id].also
		if says := strings.Contains(also, "contradiction"); says != d.contradiction {
			t.Errorf("row %s says contradiction: %v, it does: %v", id, says, d.contradiction)
		}
		if strings.Contains(also, "withdrawn") && !d.withdrawn {
			t.Errorf("row %s withdraws nothing", id)
		}
		if strings.Contains(also, "used from now on") && !d.used {
			t.Errorf("row %s uses nothing", id)
		}
		if strings.Contains(also, "stale_fence") && !d.stale {
			t.Errorf("row %s accepts what it says is stale", id)
		}
	}
}

// allowedWords are the outcomes that a row's words allow.
func allowedWords(r row) []string {
	list := strings.FieldsFunc(r.to, func(c rune) bool { return strings.ContainsRune(" ,;()", c) })
	if strings.Contains(r.also, "else held") {
		list = append(list, "held")
	}
	if strings.Contains(r.to, "decided from") {
		list = append(list, "interrupted", "held")
	}
	return list
}

// toWords is what a pair leads to; a state that stays may also be named.
func toWords(p pair) string {
	if p.m.To == p.f.State && p.f.State != Interrupted {
		if p.f.State == InFlight {
			return "" // "in_flight" and "unchanged" say the same
		}
		return "unchanged"
	}
	if p.m.To == Interrupted && p.f.State == Interrupted && p.m.Why == p.f.Why {
		return ""
	}
	return string(p.m.To)
}
