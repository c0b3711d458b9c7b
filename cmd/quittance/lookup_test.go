package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"quittance/ledger"
	"quittance/ledger/ledgertest"
)

const lookedUp = `tools:
  wire:
    business_key: "{invoice}"
    lookup:
      http: {url: "THERE/p?reference={business_key}", headers: {Authorization: "Bearer ${env:TEST_BANK_TOKEN}"}}
      found: body.data.filter(p, p.reference == effect.business_key)
      match: hit.to == effect.arguments.to
      final: hit.status == "booked"
      reference: hit.id
      result: '{"id": hit.id}'
      state: hit.status
      allow_private: true
`

// Not parallel: the secret of the look-up is in the environment.
func TestALookUpIsTestedFromTheCommandLine(t *testing.T) {
	t.Setenv("TEST_BANK_TOKEN", "tok-cli-9")
	status := http.StatusOK
	bank := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"data":[{"id":"tr_7","reference":"INV-7","to":"DE02","status":"booked\u001b[31m"}],"token":"tok-cli-9"}`))
	}))
	t.Cleanup(bank.Close)
	url := ledgertest.URL(t)
	file := policyFile(t, strings.ReplaceAll(lookedUp, "THERE", bank.URL))
	test := func(args ...string) (int, string) {
		var out bytes.Buffer
		getenv := func(name string) string { return map[string]string{"DATABASE_URL": url}[name] }
		code := run(t.Context(), append([]string{"lookup", "test", "--policy", file}, args...), getenv, &out, &out)
		return code, out.String()
	}
	code, out := test("wire", "INV-7")
	if code != exitOK {
		t.Errorf("exit %d", code)
	}
	for _, want := range []string{"inconclusive (no_call)", "the key alone", "GET " + bank.URL, "status 200", "tr_7", "never      The policy does not say that absence is proof here."} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "tok-cli-9") || strings.ContainsRune(out, '\x1b') {
		t.Errorf("a secret, or what steers a terminal, is printed: %q", out)
	}
	status = http.StatusUnauthorized
	if code, out := test("wire", "INV-7"); code != exitFailed || !strings.Contains(out, "it refused our credentials (401)") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	if code, out := test("mail", "INV-7"); code != exitFailed || !strings.Contains(out, `The tool "mail" has no look-up`) {
		t.Errorf("exit %d:\n%s", code, out)
	}
	db, err := ledger.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var audited, stored int
	err = db.Get(t.Context(), &audited, `SELECT count(*) FROM audit WHERE action = 'lookup.test' AND via = 'command' AND subject = 'tool:wire'`)
	if err == nil {
		err = db.Get(t.Context(), &stored, `SELECT (SELECT count(*) FROM lookups) + (SELECT count(*) FROM policies)`)
	}
	if err != nil || audited != 2 || stored != 0 {
		t.Errorf("%d lines in the audit trail, %d rows besides, %v", audited, stored, err)
	}
}
