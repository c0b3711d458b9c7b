package policy_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"quittance/reconcile/lookup/kinds"
	"quittance/reconcile/lookup/rules"
	"quittance/reconcile/policy"
)

// documented are the examples of a page of the documentation, each a policy without a mistake.
func documented(t *testing.T, page string) (text string, list []*policy.Policy) {
	t.Helper()
	raw, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	in := surroundings
	in.Getenv = func(name string) (string, bool) {
		if value, set := surroundings.Getenv(name); set {
			return value, set
		}
		return "a-secret-of-" + name, true
	}
	for _, part := range strings.Split(string(raw), "```yaml\n")[1:] {
		example, _, _ := strings.Cut(part, "```")
		p, mistakes := policy.LoadIn(in, page, []byte(example))
		if err := mistakes.Err(); err != nil {
			t.Errorf("%v\nin\n%s", err, example)
			continue
		}
		list = append(list, p)
	}
	return string(raw), list
}

func TestTheDocumentedPoliciesAreValid(t *testing.T) {
	t.Parallel()
	text, examples := documented(t, "policy.md")
	if len(examples) != 2 {
		t.Errorf("%d examples without a mistake, and the page says it of both", len(examples))
	}
	for field := range readSchema(t).Properties["tools"].additional().Properties {
		if !strings.Contains(text, "`"+field+"`") {
			t.Errorf("%s is not explained", field)
		}
	}
}

// There is an example of every kind of look-up, and every field is explained.
func TestTheDocumentedLookupsAreValid(t *testing.T) {
	t.Parallel()
	text, examples := documented(t, "lookups.md")
	seen := map[string]bool{}
	for _, p := range examples {
		for _, tool := range p.Tools() {
			if l := tool.Lookup(); l != nil {
				seen[l.Kind] = true
			}
		}
	}
	for _, kind := range kinds.Names() {
		if !seen[kind] {
			t.Errorf("no example of %s", kind)
		}
	}
	for field, of := range readSchema(t).Properties["tools"].additional().Properties["lookup"].Properties {
		within, names := "## Fields of every kind", []string{field}
		if slices.Contains(kinds.Names(), field) {
			within, names = "## "+field, slices.Collect(maps.Keys(of.Properties))
		}
		_, section, found := strings.Cut(text, "\n"+within+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		for _, name := range names {
			if !found || !strings.Contains(section, "`"+name+"`") && !strings.Contains(section, name+": ") {
				t.Errorf("%s is not explained under %q", name, within)
			}
		}
	}
	for _, field := range rules.EffectFields() {
		if !strings.Contains(text, "`"+field+"`") {
			t.Errorf("effect.%s is not explained", field)
		}
	}
}
