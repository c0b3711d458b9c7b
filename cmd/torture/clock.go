package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"quittance/cmd/torture/payer"
)

// clockLines are what the clock of a program gets when it is built for a torture: what
// time.Now says is off by as many seconds as the variable says. The monotonic clock goes right.
const clockLines = `package time

import "syscall"

var wrongBy = func() (n int64) {
	text, _ := syscall.Getenv("` + payer.ClockVariable + `")
	minus := len(text) > 0 && text[0] == '-'
	for _, c := range text {
		if c >= '0' && c <= '9' {
			n = n*10 + int64(c-'0')
		}
	}
	if minus {
		n = -n
	}
	return n
}()
`

// Clocks of the agents that are not of Go, for what they read of the wall's time.
const (
	pythonClock = `import datetime, os, time
_by = int(os.environ.get("` + payer.ClockVariable + `", "0"))
_time, _datetime = time.time, datetime.datetime
class _Wrong(_datetime):
    @classmethod
    def now(cls, tz=None):
        return _datetime.now(tz) + datetime.timedelta(seconds=_by)
time.time = lambda: _time() + _by
datetime.datetime = _Wrong
`
	nodeClock = `const by = 1000 * Number(process.env.` + payer.ClockVariable + ` ?? 0);
const Real = Date;
globalThis.Date = class extends Real {
  constructor(...a) { if (a.length) super(...a); else super(Real.now() + by); }
  static now() { return Real.now() + by; }
};
`
)

// wrongClocks writes what gives the programs under test a clock that can be wrong, without
// a change in them: Go's own, replaced as they are built. It returns the flag of the build.
func wrongClocks(ctx context.Context, root, dir string) (flag string, err error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("couldn't find Go: %w", err)
	}
	std := filepath.Join(strings.TrimSpace(string(out)), "src", "time")
	text, err := os.ReadFile(filepath.Join(std, "time.go"))
	if err != nil {
		return "", fmt.Errorf("couldn't read Go's clock: %w", err)
	}
	const now = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(text), now) != 1 {
		return "", errors.New("couldn't replace Go's clock: it does not read as it did")
	}
	// A place of its own, always the same: what was built with it is found again.
	to := filepath.Join(root, ".cache", "torture-clock")
	replace := map[string]string{filepath.Join(std, "time.go"): filepath.Join(to, "time.go"), filepath.Join(std, "wrong.go"): filepath.Join(to, "wrong.go")}
	for file, text := range map[string]string{
		filepath.Join(to, "time.go"):           strings.Replace(string(text), now, now+"\tsec += wrongBy\n", 1),
		filepath.Join(to, "wrong.go"):          clockLines,
		filepath.Join(to, "overlay.json"):      asJSON(map[string]any{"Replace": replace}),
		filepath.Join(dir, "sitecustomize.py"): pythonClock,
		filepath.Join(dir, "clock.cjs"):        nodeClock,
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return "", fmt.Errorf("couldn't write a clock: %w", err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return "", fmt.Errorf("couldn't write a clock: %w", err)
		}
	}
	return "-overlay=" + filepath.Join(to, "overlay.json"), nil
}

// mostWrong is by how much a clock may be off, either way.
const mostWrong = 10 * time.Minute

// clock is what a process is told of its clock.
func (w *world) clock(name string, n int) string {
	return fmt.Sprint(payer.ClockVariable, "=", w.wrongBy(name, n))
}

// wrongBy is by how many seconds the clock of the nth process of that name is off.
func (w *world) wrongBy(name string, n int) int {
	if w.clocks == "" {
		return 0
	}
	most := int(mostWrong.Seconds())
	return int(draw(w.seed, uint64(2*most+1), "clock", name, n)) - most
}
