//go:build rolling

package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"quittance/client"
	"quittance/ledger"
	"quittance/ledger/ledgertest"
	"quittance/reconcile/access"
)

// A release is rolled out as the runbook says: the schema first, then one server after
// the other. The old program works on the new schema beside the new one; agents go from
// one to the other in the middle of a run; what the old one wrote is sealed and whole.
func TestRollingUpgrade(t *testing.T) {
	old := os.Getenv("QUITTANCE_TEST_OLD")
	if old == "" {
		t.Fatal("QUITTANCE_TEST_OLD names no program: use `make rolling`")
	}
	h := &house{t: t, admin: access.NewToken(access.PersonPrefix)}
	dsn := ledgertest.Server(t).DSN()
	data := t.TempDir()
	env := []string{
		"DATABASE_URL=" + dsn, "QUITTANCE_ENVIRONMENT=test",
		"QUITTANCE_BOOTSTRAP_AGENT_TOKEN=" + agentToken, "QUITTANCE_BOOTSTRAP_ADMIN_TOKEN=" + h.admin,
	}
	oldCommand := func(args ...string) *exec.Cmd {
		c := exec.Command(old, args...)
		c.Env = append(os.Environ(), env...)
		return c
	}
	if out, err := oldCommand("migrate").CombinedOutput(); err != nil {
		t.Fatalf("the old program's migrate: %v: %s", err, out)
	}
	before := served(t, oldCommand("serve", "--listen", "127.0.0.1:0", "--data", data))
	h.pay(before, "before", 5)

	if code, out, errs := once(t, env, "migrate"); code != 0 || !strings.Contains(out, "went from version") {
		t.Fatalf("migrate beside the old server: exit %d, %s%s", code, out, errs)
	}
	after := serve(t, env, "--data", data)
	b := newTill()
	waitOld, waitNew := b.agents(t, before, 4, 25, "old"), b.agents(t, after, 4, 25, "new")
	waitOld()
	waitNew()
	if len(b.orders) != 200 {
		t.Errorf("%d orders, want 200", len(b.orders))
	}

	// A run begins at the old server and goes on at the new one: what is known is replayed.
	c := client.New(before.url, agentToken)
	run, err := c.Open(t.Context(), "handed-over", client.RunOptions{Agent: "ap-bot"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Do(t.Context(), "send_payment", map[string]string{"invoice": "handed-over"}, b.pay("handed-over")); err != nil {
		t.Fatal(err)
	}
	if err := run.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Close()
	before.end(syscall.SIGTERM)
	c = client.New(after.url, agentToken)
	defer c.Close()
	if run, err = c.Open(t.Context(), "handed-over", client.RunOptions{Agent: "ap-bot"}); err != nil {
		t.Fatal(err)
	}
	if _, err := run.Do(t.Context(), "send_payment", map[string]string{"invoice": "handed-over"}, b.pay("handed-over")); err != nil {
		t.Fatal(err)
	}
	for order, n := range b.orders {
		if n != 1 {
			t.Errorf("order %s was paid %d times", order, n)
		}
	}
	if state, by := h.log(after); state != "whole" {
		t.Errorf("the log is %s (%s)", state, by)
	}
	after.end(syscall.SIGTERM)
	if code, out, errs := once(t, env, "verify", "--data", data); code != exitOK {
		t.Errorf("verify: exit %d, %s%s", code, out, errs)
	}
	db, err := ledger.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var taken int
	if err := db.Get(t.Context(), &taken, `SELECT count(*) FROM effects WHERE state = 'taken'`); err != nil || taken != 5+len(b.orders) {
		t.Errorf("%d are on record as paid, want %d, %v", taken, 5+len(b.orders), err)
	}
}
