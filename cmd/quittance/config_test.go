package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		says string
	}{
		"unknown command":        {args: []string{"sing"}, says: "sing"},
		"unknown flag":           {args: []string{"serve", "--sing"}, says: "--sing"},
		"policy file is missing": {args: []string{"serve", "--policy", "no/such.yaml"}, says: "no/such.yaml"},
		"database without place": {env: map[string]string{"DATABASE_URL": "postgres://x/y"}, args: []string{"serve"}, says: "QUITTANCE_ENVIRONMENT"},
		"public URL with a path": {args: []string{"serve", "--public-url", "https://x/y"}, says: "--public-url"},
		"public URL of a word":   {args: []string{"serve", "--public-url", "quittance"}, says: "--public-url"},
		"public URL with a user": {args: []string{"serve", "--public-url", "https://me:pw@x"}, says: "--public-url"},
		"verify with a password": {args: []string{"verify", "--database", "postgres://me:pw@x/y"}, says: "PGPASSWORD"},
		"verify of a word":       {args: []string{"verify", "--database", "quittance"}, says: "--database"},
		"verify without a place": {args: []string{"verify", "--database", "postgres://x/y"}, says: "--anchor"},
		"backup without a URL":   {env: map[string]string{"DATABASE_URL": "host=x password=hush"}, args: []string{"backup", "somewhere"}, says: "DATABASE_URL"},
		"restore of no backup":   {args: []string{"restore", "."}, says: "database.dump"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			code := run(t.Context(), c.args, func(k string) string { return c.env[k] }, &out, &errs)
			if code != exitUsage || !strings.Contains(errs.String(), c.says) {
				t.Errorf("exit %d, %q; want %d and %q", code, errs.String(), exitUsage, c.says)
			}
		})
	}
}

func TestNoSecretIsPrinted(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"DATABASE_URL":                    "postgres://me:hush-1@127.0.0.1:1/ledger?sslmode=disable&password=hush-2&connect_timeout=1",
		"QUITTANCE_ENVIRONMENT":           "test",
		"QUITTANCE_BOOTSTRAP_ADMIN_TOKEN": "hush-3",
		"QUITTANCE_BOOTSTRAP_AGENT_TOKEN": "hush-4",
	}
	getenv := func(k string) string { return env[k] }
	var printed bytes.Buffer
	// Nothing answers on port 1: the error of a failed connection is covered too.
	if code := run(t.Context(), []string{"serve", "--listen", "127.0.0.1:0"}, getenv, &printed, &printed); code != exitFailed {
		t.Fatalf("exit %d: %s", code, printed.String())
	}
	for _, say := range []string{"127.0.0.1:1/ledger", "bootstrap_admin_token=set"} {
		if !strings.Contains(printed.String(), say) {
			t.Errorf("%q is not in the output:\n%s", say, printed.String())
		}
	}
	e := environmentOf(getenv)
	fmt.Fprintf(&printed, "%v %+v %#v %s", e, e, e, e.DatabaseURL)
	slog.New(slog.NewJSONHandler(&printed, nil)).Info("x", "e", e, "c", &config{environment: e})
	if err := json.NewEncoder(&printed).Encode(e); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"DATABASE_URL=host=x password=hush-5", "nonsense hush-6"} {
		env["DATABASE_URL"] = bad
		run(t.Context(), []string{"serve", "--listen", "127.0.0.1:0"}, getenv, &printed, &printed)
	}
	if strings.Contains(printed.String(), "hush") {
		t.Errorf("a secret was printed:\n%s", printed.String())
	}
}

func TestHelpAndVersionNeedNothing(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--help"}, {"serve", "--help"}, {"version"}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, func(string) string { return "" }, &out, &errs); code != 0 || !strings.Contains(out.String(), "quittance") {
			t.Errorf("quittance %v: exit %d, %q, %q", args, code, out.String(), errs.String())
		}
	}
}
