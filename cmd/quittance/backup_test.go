package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"quittance/client"
	"quittance/ledger/embedded"
	"quittance/ledger/ledgertest"
	"quittance/reconcile/access"
)

// house is a server on an embedded database, with an agent's and an admin's token.
type house struct {
	t     *testing.T
	dir   string
	admin string
	env   []string
}

func newHouse(t *testing.T) *house {
	h := &house{t: t, dir: ledgertest.DataDir(t), admin: access.NewToken(access.PersonPrefix)}
	h.env = []string{"QUITTANCE_BOOTSTRAP_AGENT_TOKEN=" + agentToken, "QUITTANCE_BOOTSTRAP_ADMIN_TOKEN=" + h.admin, "DATABASE_URL="}
	return h
}

// at is the same people's house on another data folder.
func (h *house) at(dir string) *house {
	other := *h
	other.dir = dir
	return &other
}

func (h *house) serve(args ...string) *process {
	h.t.Helper()
	return serve(h.t, h.env, append([]string{"--data", h.dir}, args...)...)
}

// pay has an agent record n effects, each in a run of its own.
func (h *house) pay(p *process, name string, n int) {
	h.t.Helper()
	c := client.New(p.url, agentToken)
	defer c.Close()
	for i := range n {
		run, err := c.Open(h.t.Context(), fmt.Sprintf("%s-%d", name, i), client.RunOptions{Agent: "ap-bot"})
		if err == nil {
			_, err = run.Do(h.t.Context(), "send_payment", map[string]string{"invoice": fmt.Sprintf("%s-%d", name, i)}, paid)
		}
		if err == nil {
			err = run.Release(h.t.Context())
		}
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

// log asks the server how its log stands.
func (h *house) log(p *process) (state, foundBy string) {
	h.t.Helper()
	var out client.LogState
	h.call(p, http.MethodGet, "/v1/log", "", &out)
	return out.State, out.FoundBy
}

func (h *house) call(p *process, method, path, body string, out any) {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+h.admin)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		h.t.Fatalf("%s %s: %d", method, path, res.StatusCode)
	}
	if err := json.NewDecoder(res.Body).Decode(out); err != nil {
		h.t.Fatal(err)
	}
}

// acknowledged fails the test unless nothing is released now, and a person's
// acknowledgement and end of the gap put that right.
func (h *house) acknowledged(p *process, says string) {
	h.t.Helper()
	if state, by := h.log(p); state != "behind" || !strings.Contains(by, says) {
		h.t.Fatalf("the log is %s (%s), want behind: %s", state, by, says)
	}
	c := client.New(p.url, agentToken)
	defer c.Close()
	_, err := c.Open(h.t.Context(), "refused", client.RunOptions{Agent: "ap-bot"})
	if problem, ok := errors.AsType[*client.Problem](err); !ok || problem.Code != "log_behind" {
		h.t.Fatalf("a run was opened while the log is behind: %v", err)
	}
	var out client.LogState
	for _, step := range []string{"acknowledge", "end"} {
		h.call(p, http.MethodPost, "/v1/log/"+step, `{"note":"restored from the backup, all looked at"}`, &out)
	}
	h.pay(p, "after", 2)
}

// sealed waits until everything is sealed and anchored.
func (h *house) sealed(block int64) {
	h.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		b, _ := os.ReadFile(filepath.Join(h.dir, embedded.AnchorName))
		var a struct{ Block int64 }
		if json.Unmarshal(b, &a) == nil && a.Block > block {
			return
		}
		if time.Now().After(end) {
			h.t.Fatalf("nothing was anchored: %s", b)
		}
	}
}

// verify runs the command and gives its exit code and report.
func (h *house) verify(args ...string) (code int, report struct {
	OK     bool
	Block  int64
	Checks []struct {
		Name     string
		OK       bool
		Looked   int64 `json:"looked_at"`
		Findings []struct{ What string }
	}
},
) {
	h.t.Helper()
	code, out, errs := once(h.t, []string{"DATABASE_URL="}, append([]string{"verify", "--json", "--data", h.dir}, args...)...)
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		h.t.Fatalf("verify: exit %d, %v: %s%s", code, err, out, errs)
	}
	return code, report
}

// restore puts a dump into the database that runs in the data folder, as the runbook
// says.
func (h *house) restore(dump string) {
	h.t.Helper()
	in, err := embedded.Reach(h.t.Context(), embedded.Options{Dir: h.dir})
	if err != nil {
		h.t.Fatal(err)
	}
	program, err := embedded.Program("pg_restore", 0)
	if err != nil {
		h.t.Fatal(err)
	}
	out, err := exec.Command(program, "--clean", "--if-exists", "--single-transaction", "--host="+filepath.Join(h.dir, "postgres"), "--username=quittance", "--dbname=quittance", dump).CombinedOutput()
	if err := errors.Join(err, in.Stop(h.t.Context())); err != nil {
		h.t.Fatalf("%v: %s", err, out)
	}
}

// The drill of the runbook: a backup is taken while agents work, work goes on, the
// database is lost, the backup is restored elsewhere and a server started on it.
func TestABackupIsRestored(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := h.serve()
	h.pay(p, "before", 5)
	h.sealed(0)
	taken := filepath.Join(t.TempDir(), "backups", "monday")
	if code, out, errs := once(t, []string{"DATABASE_URL="}, "backup", taken, "--data", h.dir); code != 0 || !strings.Contains(out, "sealed to block") {
		t.Fatalf("backup: exit %d, %s%s", code, out, errs)
	}
	if code, _, errs := once(t, []string{"DATABASE_URL="}, "backup", taken, "--data", h.dir); code == 0 || !strings.Contains(errs, "there already") {
		t.Fatalf("over another backup: exit %d, %s", code, errs)
	}
	h.pay(p, "lost", 3)
	p.end(syscall.SIGKILL)

	n := h.at(ledgertest.DataDir(t))
	if code, out, errs := once(t, []string{"DATABASE_URL="}, "restore", taken, "--data", n.dir); code != 0 || !strings.Contains(out, "Nothing is released") {
		t.Fatalf("restore: exit %d, %s%s", code, out, errs)
	}
	if code, _, errs := once(t, []string{"DATABASE_URL="}, "restore", taken, "--data", n.dir); code != exitFailed || !strings.Contains(errs, "not empty") {
		t.Fatalf("over another database: exit %d, %s", code, errs)
	}
	// The backup holds the block that its own anchor names.
	code, report := n.verify("--anchor", filepath.Join(taken, "anchor.json"))
	if code != exitOK || !report.OK || report.Block == 0 || len(report.Checks) < 4 {
		t.Fatalf("verify of what was restored: exit %d, %+v", code, report)
	}
	for _, c := range report.Checks {
		if c.Looked == 0 && c.Name != "unsealed" && c.Name != "money" {
			t.Errorf("%s looked at nothing", c.Name)
		}
	}
	q := n.serve() // also without the flag
	n.acknowledged(q, "restored from the backup monday")
	q.end(syscall.SIGTERM)
	q = n.serve()
	if state, by := n.log(q); state != "whole" {
		t.Errorf("after the drill the log is %s (%s)", state, by)
	}
	if code, report := n.verify(); code != exitOK || !report.OK {
		t.Errorf("verify after the drill: exit %d, %+v", code, report)
	}
}

// An older backup put back into the same cluster: the same system identifier, the same
// timeline, no flag, and no agent that would show a position. The anchor tells.
func TestAnOlderBackupInTheSameClusterIsFoundByTheAnchor(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := h.serve()
	h.pay(p, "before", 3)
	taken := filepath.Join(t.TempDir(), "monday")
	if code, out, errs := once(t, []string{"DATABASE_URL="}, "backup", taken, "--data", h.dir); code != 0 {
		t.Fatalf("backup: exit %d, %s%s", code, out, errs)
	}
	h.sealed(0)
	h.pay(p, "lost", 3)
	code, report := h.verify()
	if code != exitOK {
		t.Fatalf("verify beside the server: exit %d, %+v", code, report)
	}
	h.pay(p, "lost too", 1) // what verify saw may have been all there was to seal
	h.sealed(report.Block)
	p.end(syscall.SIGTERM)
	h.restore(filepath.Join(taken, "database.dump"))
	// Looking changes nothing, and says it in its exit code.
	if code, report := h.verify("--look-only"); code != exitUnclean || report.OK || !strings.Contains(report.Checks[0].Findings[0].What, "anchor outside the database") {
		t.Fatalf("verify: exit %d, %+v", code, report)
	}
	p = h.serve()
	h.acknowledged(p, "the anchor outside the database names block")
	p.end(syscall.SIGTERM)
	p = h.serve()
	if state, by := h.log(p); state != "whole" {
		t.Errorf("at the next start the log is %s (%s)", state, by)
	}
}

// A copy of PostgreSQL's own folder, put in the place of the lost one, and beside it
// elsewhere: there it is also a copy.
func TestAPhysicalBackupIsRestored(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := h.serve()
	h.pay(p, "before", 3)
	taken := filepath.Join(t.TempDir(), "monday")
	if code, out, errs := once(t, []string{"DATABASE_URL="}, "backup", taken, "--physical", "--data", h.dir); code != 0 {
		t.Fatalf("backup: exit %d, %s%s", code, out, errs)
	}
	h.sealed(0)
	_, report := h.verify()
	h.pay(p, "lost", 2)
	h.sealed(report.Block)
	p.end(syscall.SIGTERM)

	put := func(dir string) {
		t.Helper()
		cluster := filepath.Join(dir, "postgres")
		st, err := os.Stat(filepath.Join(h.dir, "postgres"))
		if err != nil {
			t.Fatal(err)
		}
		owner := st.Sys().(*syscall.Stat_t)
		if err := os.RemoveAll(cluster); err != nil {
			t.Fatal(err)
		}
		for _, cmd := range [][]string{{"cp", "-a", filepath.Join(taken, "postgres"), cluster}, {"chown", "-R", fmt.Sprintf("%d:%d", owner.Uid, owner.Gid), cluster}} {
			if out, err := exec.Command(cmd[0], cmd[1:]...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %v: %s", cmd, err, out)
			}
		}
	}
	n := h.at(ledgertest.DataDir(t))
	put(n.dir)
	q := n.serve("--restored")
	if !strings.Contains(q.output(), "belongs to another place") {
		t.Errorf("a copy elsewhere is not taken for one:\n%s", q.output())
	}
	n.acknowledged(q, "--restored")
	q.end(syscall.SIGTERM)

	put(h.dir)
	p = h.serve()
	h.acknowledged(p, "the anchor outside the database names block")
}

// The whole database is gone, and the anchor is left: an empty one in its place must not
// pass for a first start.
func TestAnEmptyDatabaseInThePlaceOfALostOne(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := h.serve()
	h.pay(p, "before", 2)
	h.sealed(0)
	p.end(syscall.SIGTERM)
	if err := os.RemoveAll(filepath.Join(h.dir, "postgres")); err != nil {
		t.Fatal(err)
	}
	p = h.serve()
	h.acknowledged(p, "the anchor outside the database names block")
}

// With DATABASE_URL the anchor stands under the name of the place.
func TestTheAnchorOfADatabaseOfSomebodyElses(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	env := []string{"DATABASE_URL=" + ledgertest.URL(t), "QUITTANCE_ENVIRONMENT=test", "QUITTANCE_BOOTSTRAP_AGENT_TOKEN=" + agentToken}
	p := serve(t, env, "--data", data)
	(&house{t: t}).pay(p, "before", 2)
	path := filepath.Join(data, "anchor-test.json")
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("there is no anchor")
		}
	}
	if code, out, errs := once(t, env, "verify", "--data", data); code != exitOK || !strings.Contains(out, "Sealed to block") {
		t.Errorf("verify: exit %d, %s%s", code, out, errs)
	}
	taken := filepath.Join(data, "monday")
	if code, out, errs := once(t, env, "backup", taken); code != 0 {
		t.Errorf("backup: exit %d, %s%s", code, out, errs)
	}
	// One that fails leaves nothing behind that could be taken for a backup.
	if code, out, _ := once(t, env, "backup", "--physical", filepath.Join(data, "tuesday")); code != exitFailed {
		t.Errorf("a physical backup by a role that may not replicate: exit %d, %s", code, out)
	}
	if left, err := filepath.Glob(filepath.Join(data, "tuesday*")); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
	p.end(syscall.SIGTERM)
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := once(t, env, "serve", "--listen", "127.0.0.1:0", "--data", data); code != exitFailed || !strings.Contains(errs, "the anchor cannot be read") {
		t.Errorf("with half an anchor: exit %d, %s", code, errs)
	}
}

// paid is the downstream: it takes everything.
func paid(_ context.Context, call client.Call) (any, error) {
	return client.Reference("po_"+call.VendorKey, map[string]bool{"ok": true}), nil
}
