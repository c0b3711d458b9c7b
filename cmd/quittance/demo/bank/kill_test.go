package bank

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// ledgerVariable turns the test binary into a bank on the ledger it names.
const ledgerVariable = "QUITTANCE_TEST_BANK_LEDGER"

func TestMain(m *testing.M) {
	if path := os.Getenv(ledgerVariable); path != "" {
		bankProcess(path)
	}
	os.Exit(m.Run())
}

func bankProcess(path string) {
	l, err := OpenLedger(path)
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString("http://" + listener.Addr().String() + "\n")
	panic(New(l, Behaviour{LoseAnswers: 1}, os.Stdout).Serve(context.Background(), listener))
}

// start runs a bank as a process; next reads its output line by line.
func start(t *testing.T, path string) (cmd *exec.Cmd, url string, next func() string) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), ledgerVariable+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	next = func() string {
		if !lines.Scan() {
			t.Fatalf("the bank ended: %v", lines.Err())
		}
		return lines.Text()
	}
	return cmd, next(), next
}

// What was booked is there after a kill -9, also when nobody was told; half a line is
// not, and does not stop the bank.
func TestTheLedgerSurvivesKill(t *testing.T) {
	t.Parallel()
	path := ledgerFile(t)
	bank, url, next := start(t, path)
	go func() { _, _ = Pay(t.Context(), url, "k", order) }()
	if line := next(); line != "booked pay_1 for INV-9" {
		t.Fatalf("the bank says %q", line)
	}
	if err := bank.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = bank.Wait()

	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(`{"id":"pay_2","reference":"INV`); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	_, url = open(t, path, Behaviour{})
	want(t, ids(t, url, path), "pay_1")
	if p := pay(t, url, "k", order); p.ID != "pay_1" {
		t.Errorf("the key is forgotten: %s", p.ID)
	}
	if p := pay(t, url, "k2", order); p.ID != "pay_2" {
		t.Errorf("the next payment is %s", p.ID)
	}
	want(t, ids(t, url, path), "pay_1", "pay_2")
}

func TestABrokenLedgerIsRefused(t *testing.T) {
	t.Parallel()
	path := ledgerFile(t)
	if err := os.WriteFile(path, []byte("{\"id\":\"pay_1\"}\nnonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLedger(path); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("%v", err)
	}
}
