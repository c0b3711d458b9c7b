package main

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"quittance/ledger/ledgertest"
)

// The month's own hints lead to it: the commands that it prints name its folder and its
// policy, and who signs in by them sees what is owed.
func TestTheSampleMonthIsFoundByItsHints(t *testing.T) {
	t.Parallel()
	data, rules := ledgertest.DataDir(t), filepath.Join(t.TempDir(), "month.yaml")
	env := []string{"DATABASE_URL="}
	code, out, errs := once(t, env, "demo-month", "--data", data, "--policy", rules, "--orders", "24")
	if code != exitOK {
		t.Fatalf("exit %d, %s", code, errs)
	}
	var serving, token []string
	for line := range strings.Lines(out) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "quittance" {
			if words[1] == "serve" {
				serving = words[2:]
			} else {
				token = words[1:]
			}
		}
	}
	p := serve(t, env, serving...)
	code, out, errs = once(t, env, token...)
	if code != exitOK || !strings.Contains(out, "qp_") {
		t.Fatalf("%q: exit %d, %s%s", token, code, out, errs)
	}
	_, secret, _ := strings.Cut(out, "qp_")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer qp_"+strings.Fields(secret)[0])
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if body := string(raw); !strings.Contains(body, "quittance_money_equation_holds") || strings.Contains(body, "equation_holds 0") {
		t.Errorf("%s", body)
	}
}
