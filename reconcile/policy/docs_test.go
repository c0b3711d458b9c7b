package policy_test

import (
	"os"
	"strings"
	"testing"

	"quittance/reconcile/lookup/kinds"
	"quittance/reconcile/lookup/rules"
	"quittance/reconcile/policy"
)

// Every example of the documentation is a policy without a mistake, there is one for every
// kind, and every field is explained.
func TestTheDocumentedLookupsAreValid(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/lookups.md")
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
	seen := map[string]bool{}
	for _, part := range strings.Split(string(raw), "```yaml\n")[1:] {
		example, _, _ := strings.Cut(part, "```")
		p, mistakes := policy.LoadIn(in, "lookups.md", []byte(example))
		if err := mistakes.Err(); err != nil {
			t.Errorf("%v\nin\n%s", err, example)
			continue
		}
		for _, tool := range p.Tools() {
			seen[tool.Lookup().Kind] = true
		}
	}
	for _, kind := range kinds.Names() {
		if !seen[kind] {
			t.Errorf("no example of %s", kind)
		}
	}
	for _, field := range rules.Fields {
		if !strings.Contains(string(raw), "`"+field+"`") {
			t.Errorf("%s is not explained", field)
		}
	}
	for _, field := range rules.EffectFields() {
		if !strings.Contains(string(raw), "`"+field+"`") {
			t.Errorf("effect.%s is not explained", field)
		}
	}
}
