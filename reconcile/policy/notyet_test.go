package policy_test

import (
	"slices"
	"testing"

	"quittance/reconcile/policy"
)

func TestWhatIsNotActedUponIsSaid(t *testing.T) {
	t.Parallel()
	p, mistakes := policy.Load("q.yaml", []byte(`
tools:
  a: {mode: observe}
  b: {on_unknown: same_key, vendor_key: {life: 24h}, lands_within: 10m}
  c: {}
  d: {business_key: "{n}", lookup: {worker: {}}}
`))
	if p == nil {
		t.Fatal(mistakes)
	}
	want := []string{
		"tools.a.mode: observe is not acted upon yet; the tool is enforced",
	}
	if got := p.NotYet(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
