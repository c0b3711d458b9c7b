package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"quittance/ledger"
	"quittance/ledger/audit"
	"quittance/ledger/ledgertest"
	"quittance/reconcile/access"
	"quittance/reconcile/policy"
)

const (
	goodPolicy = "tools:\n  send_payment:\n    deadline: 30s\n"
	badPolicy  = "tools:\n  send_payment:\n    deadline: soon\n    sing: loudly\n"
)

func policyFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "quittance.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPolicyCheckListsEveryMistakeWithItsPlace(t *testing.T) {
	t.Parallel()
	check := func(file string) (int, string) {
		var out bytes.Buffer
		code := run(t.Context(), []string{"policy", "check", file}, func(string) string { return "" }, &out, &out)
		return code, out.String()
	}
	good := policyFile(t, goodPolicy)
	if code, out := check(good); code != exitOK || !strings.Contains(out, "1 tools declared") {
		t.Errorf("a good policy: exit %d, %q", code, out)
	}
	bad := policyFile(t, badPolicy)
	code, out := check(bad)
	if code != exitFailed {
		t.Errorf("a bad policy: exit %d", code)
	}
	for _, place := range []string{bad + ":3:", bad + ":4:"} {
		if !strings.Contains(out, place) {
			t.Errorf("no mistake at %s in %q", place, out)
		}
	}
}

func TestServeRefusesABadPolicyBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	dir := ledgertest.DataDir(t)
	code, _, errs := once(t, nil, "serve", "--listen", "127.0.0.1:0", "--data", dir, "--policy", policyFile(t, badPolicy))
	if code != exitFailed || !strings.Contains(errs, "quittance.yaml:3:") || !strings.Contains(errs, "quittance.yaml:4:") {
		t.Errorf("exit %d, %q", code, errs)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("a database was begun: %v, %v", left, err)
	}
}

// Not parallel: the signal goes to the whole test process.
func TestPolicyIsReadAgainOnHangupAndKeptWhenBad(t *testing.T) {
	file := policyFile(t, goodPolicy)
	db := ledgertest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	put := make(chan *policy.Policy, 1)
	logged := make(lines, 16)
	done := make(chan struct{})
	go func() {
		defer close(done)
		watchPolicy(ctx, file, func(_ context.Context, p *policy.Policy) error {
			put <- p
			return nil
		}, access.New(db).Record, slog.New(slog.NewTextHandler(logged, nil)))
	}()
	defer func() { cancel(); <-done }()

	// The first signal may come before watchPolicy listens; a test process that listens
	// itself does not die of it.
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGHUP)
	defer signal.Stop(ignored)
	var p *policy.Policy
	for deadline := time.Now().Add(10 * time.Second); p == nil; {
		hangup(t)
		select {
		case p = <-put:
		case <-time.After(100 * time.Millisecond):
			if time.Now().After(deadline) {
				t.Fatal("the policy was not read again")
			}
		}
	}
	if p.Tool("send_payment").Deadline != 30*time.Second {
		t.Errorf("deadline %v", p.Tool("send_payment").Deadline)
	}
	if err := os.WriteFile(file, []byte(badPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	hangup(t)
	for timeout := time.After(10 * time.Second); ; {
		select {
		case line := <-logged:
			if !strings.Contains(line, "stays in force") {
				continue // of an earlier signal
			}
			if !strings.Contains(line, "quittance.yaml:3:") {
				t.Errorf("the log says %q", line)
			}
			cancel()
			<-done
			onTheTrail(t, db, p.Digest)
			return
		case q := <-put:
			if q == nil || q.Digest != p.Digest {
				t.Fatal("a bad policy was put in force")
			}
		case <-timeout:
			t.Fatal("nothing was said about the bad policy")
		}
	}
}

// onTheTrail finds the reload that was refused, and those before it.
func onTheTrail(t *testing.T, db *ledger.DB, digest string) {
	t.Helper()
	rows, err := audit.Page(t.Context(), db, audit.Filter{Action: "policy.reload", Limit: 10})
	if err != nil || len(rows) < 2 {
		t.Fatalf("%d lines on the audit trail, %v", len(rows), err)
	}
	if last := rows[0]; last.Outcome != "denied" || !strings.Contains(last.Note, "quittance.yaml:3:") {
		t.Errorf("the trail says %+v of the bad policy", last)
	}
	if first := rows[len(rows)-1]; first.Outcome != "done" || first.Subject != "policy:"+digest {
		t.Errorf("the trail says %+v of the good one", first)
	}
}

func hangup(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

// lines is a writer that hands on what is logged, a line a value.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}
