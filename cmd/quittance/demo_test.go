package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"quittance/cmd/quittance/demo"
	"quittance/cmd/quittance/demo/bank"
	"quittance/ledger/ledgertest"
)

// demoEnv gives a demo a temporary folder of its own, in which everything it makes
// must be found, and a database that it must not touch.
func demoEnv(t *testing.T) (tmp string, env []string) {
	t.Helper()
	tmp = ledgertest.DataDir(t)
	return tmp, []string{"TMPDIR=" + tmp, "DATABASE_URL=postgres://nobody@127.0.0.1:1/production", "QUITTANCE_ENVIRONMENT=production"}
}

// nothingRuns fails when a process of the demo is left.
func nothingRuns(t *testing.T, tmp string) {
	t.Helper()
	for pid, what := range running(tmp) {
		t.Errorf("process %d is left: %s", pid, what)
	}
}

// running lists the processes that work in a folder or name it.
func running(folder string) map[int]string {
	found := map[int]string{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		title, _ := os.ReadFile(d + "/cmdline")
		at, _ := os.Readlink(d + "/cwd")
		if len(title) == 0 || !strings.Contains(string(title), folder) && !strings.HasPrefix(at, folder) {
			continue
		}
		var pid int
		_, _ = fmt.Sscanf(filepath.Base(d), "%d", &pid)
		found[pid] = strings.ReplaceAll(string(title), "\x00", " ")
	}
	return found
}

func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		names = append(names, e.Name())
	}
	return names
}

func TestDemoScripted(t *testing.T) {
	t.Parallel()
	tmp, env := demoEnv(t)
	code, out, errs := once(t, env, "demo", "--scripted")
	t.Log(out)
	if code != exitOK || errs != "" {
		t.Fatalf("exit %d, %q", code, errs)
	}
	rest := out
	for _, want := range []string{
		"1. Without Quittance", "✓ The bank's ledger: 2 payments for INV-9, 8,400.00 USD in all",
		"2. With Quittance", "answered from the record: pay_1", "The run is finished", "✓ The bank's ledger: one payment",
		"3. The case that the bank settles", "✓ The bank's answer is a proof. The run may go on, and no person was asked.",
		"goes on after turn 1", "with the bank's answer", "The run is finished", "✓ The bank's ledger: one payment",
		"4. The case no program can decide", "refused", "whether the payment was made is unknown", "✓ The bank's ledger: one payment",
		"It was found, but it is not final.", "That proves nothing, and a person has to decide", "decides: taken, reference pay_1", "goes on after turn 1", "The run is finished", "✓ The bank's ledger: one payment",
		"All of it held.",
	} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("%q is not said where it should be", want)
		}
		rest = after
	}
	if left := entries(t, tmp); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
	nothingRuns(t, tmp)
}

// A claim that no bank could break would prove nothing.
func TestDemoNoticesABankThatLies(t *testing.T) {
	t.Parallel()
	const books, proof = "The bank's ledger", "The bank's answer is a proof"
	s := openStage(t, demo.Policy)
	for _, c := range []struct {
		part  int
		fault bank.Fault
		claim string // the first that does not hold
	}{
		{1, bank.Double, books}, {1, bank.Forget, books}, {1, bank.Merge, books},
		{2, bank.Double, books}, {2, bank.Forget, books},
		{3, bank.Double, proof}, {3, bank.Forget, proof}, {3, bank.Deny, proof}, {3, bank.Misstate, proof}, {3, bank.Invent, books},
		{4, bank.Double, books}, {4, bank.Forget, books}, {4, bank.Deny, books},
		{4, bank.Hasten, ""}, // the look-up closes it before the refused start, or after
	} {
		t.Run(fmt.Sprintf("part %d, %s", c.part, c.fault), func(t *testing.T) {
			t.Parallel()
			notHeld(t, s.Play(t.Context(), c.part, c.fault), c.claim)
		})
	}
}

// What the parts with Quittance claim is Quittance's doing.
func TestDemoNoticesThatNothingIsGuarded(t *testing.T) {
	t.Parallel()
	s := openStage(t, slices.Concat(demo.Policy, []byte("    effect: none\n")))
	for part := 2; part <= 4; part++ {
		t.Run(fmt.Sprintf("part %d", part), func(t *testing.T) {
			t.Parallel()
			notHeld(t, s.Play(t.Context(), part, bank.NoFault), "")
		})
	}
}

func notHeld(t *testing.T, err error, claim string) {
	t.Helper()
	broken, ok := errors.AsType[*demo.Broken](err)
	if !ok || !strings.HasPrefix(broken.Claim, claim) {
		t.Errorf("%v, want a claim about %q that does not hold", err, claim)
	}
}

// openStage starts a server for single parts. Its children are this test binary.
func openStage(t *testing.T, policy []byte) *demo.Stage {
	t.Helper()
	s, err := demo.Open(t.Context(), demo.Options{Out: t.Output(), Policy: policy, Env: []string{mainVariable + "=1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(false); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestAFailedDemoKeepsItsFilesAndNamesThem(t *testing.T) {
	t.Parallel()
	tmp, env := demoEnv(t)
	code, out, errs := once(t, env, "demo", "--scripted", "--fault", "forget")
	left := entries(t, tmp)
	if code != exitFailed || !strings.Contains(out, "✗ The bank's ledger: no payment") || len(left) != 1 || !strings.Contains(errs, filepath.Join(tmp, left[0])) {
		t.Fatalf("exit %d, left %v, %q\n%s", code, left, errs, out)
	}
	kept := strings.Join(entries(t, filepath.Join(tmp, left[0])), " ")
	for _, file := range []string{"serve.log", "bank-1.jsonl", "bank-1.log", "agent-1.2.log", "data"} {
		if !strings.Contains(kept, file) {
			t.Errorf("%s is not kept; there are %s", file, kept)
		}
	}
	nothingRuns(t, tmp)
}

// playing is a demo whose output is read as a person would.
type playing struct {
	*process
	out  io.Reader
	said string
}

// play starts a demo. Its output stays open until t ends: a demo that could not write
// would die of that, and not of what the test does to it.
func play(t *testing.T, env []string, args ...string) *playing {
	t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	env = append(env, "DISPLAY=", "WAYLAND_DISPLAY=")
	d := &playing{process: &process{t: t, cmd: command(env, append([]string{"demo"}, args...)...), exited: make(chan struct{})}, out: out}
	d.cmd.Stdout, d.cmd.Stderr = in, &d.log
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	go func() {
		_ = d.cmd.Wait()
		close(d.exited)
	}()
	t.Cleanup(func() { _ = d.cmd.Process.Kill() })
	return d
}

// until reads on to a text, and returns what is matched after it.
func (d *playing) until(pattern string) []string {
	d.t.Helper()
	want := regexp.MustCompile(pattern)
	for buf := make([]byte, 4096); ; {
		if at := want.FindStringSubmatchIndex(d.said); at != nil {
			found := want.FindStringSubmatch(d.said)
			d.said = d.said[at[1]:]
			return found
		}
		n, err := d.out.Read(buf)
		if err != nil {
			d.t.Fatalf("the demo ended before it said %q: %q\n%s", pattern, d.log.String(), d.said)
		}
		d.said += string(buf[:n])
	}
}

// playUntil starts a scripted demo and returns when the given text has been said.
func playUntil(t *testing.T, text string) (p *playing, tmp string) {
	t.Helper()
	tmp, env := demoEnv(t)
	p = play(t, env, "--scripted")
	p.until(regexp.QuoteMeta(text))
	return p, tmp
}

// Ctrl-C, and the terminal closed because nobody waits: all is put away all the same.
func TestAnInterruptedDemoLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, until := range []string{"1. Without", "it is killed."} {
		t.Run(until, func(t *testing.T) {
			t.Parallel()
			p, tmp := playUntil(t, until)
			if len(running(tmp)) == 0 {
				t.Error("nothing runs, so this test proves nothing")
			}
			if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			time.Sleep(50 * time.Millisecond)        // so that it is on its way out
			_ = p.cmd.Process.Signal(syscall.SIGHUP) // it may have ended by now
			if s := p.wait(); s.ExitStatus() != exitFailed || !strings.Contains(p.log.String(), "interrupted") {
				t.Errorf("%v, %q", s, p.log.String())
			}
			if left := entries(t, tmp); len(left) > 0 {
				t.Errorf("files are left: %v", left)
			}
			nothingRuns(t, tmp)
		})
	}
}

// A demo that is killed cannot end its children. Its guard does.
func TestAKilledDemoTakesItsProcessesWithIt(t *testing.T) {
	t.Parallel()
	p, tmp := playUntil(t, "it is killed.")
	if len(running(tmp)) == 0 {
		t.Fatal("nothing runs, so this test proves nothing")
	}
	p.end(syscall.SIGKILL)
	for deadline := time.Now().Add(30 * time.Second); len(running(tmp)) > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			nothingRuns(t, tmp)
			return
		}
	}
}
