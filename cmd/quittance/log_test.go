package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quittance/ledger/ledgertest"
	"quittance/reconcile/access"
)

// A person acknowledges from the command line that a file was changed, and closes its run,
// under their own token.
func TestAPersonActsOnALogFileFromTheCommandLine(t *testing.T) {
	t.Parallel()
	token := access.NewToken(access.PersonPrefix)
	env := []string{"DATABASE_URL=" + ledgertest.URL(t), "QUITTANCE_ENVIRONMENT=test", "QUITTANCE_BOOTSTRAP_ADMIN_TOKEN=" + token}
	p := serve(t, env)
	env = append(env, "QUITTANCE_URL="+p.url, "QUITTANCE_TOKEN="+token)
	path := filepath.Join(t.TempDir(), "effects.jsonl")
	lines := `{"type":"intent","run":"r-1","key":"K-1","tool":"note"}` + "\n" + `{"type":"completed","run":"r-1","key":"K-1"}` + "\n"
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	says := func(code int, text string, args ...string) {
		t.Helper()
		got, out, errs := once(t, env, append([]string{"log"}, args...)...)
		if got != code || !strings.Contains(out+errs, text) {
			t.Fatalf("%v: exit %d, want %d and %q:\n%s%s", args, got, code, text, out, errs)
		}
	}
	write(lines)
	says(exitFailed, "knows no such log file", "acknowledge", path, "--note", "x")
	says(exitOK, "2 new", "import", path, "--account", "acme")
	says(exitFailed, "no alarm", "acknowledge", path, "--note", "x")
	write(lines[:len(lines)/2])
	says(exitFailed, "shrunken", "import", path, "--account", "acme")
	says(exitFailed, "changed", "close", path, "--run", "r-1")
	says(exitUsage, "--note", "acknowledge", path)
	says(exitOK, "acknowledged that it was shrunken", "acknowledge", path, "--note", "restored by hand")
	says(exitOK, "the run is finished", "close", path, "--run", "r-1")
	says(exitFailed, "closed", "close", path, "--run", "r-1", "--outcome", "failed")
}
