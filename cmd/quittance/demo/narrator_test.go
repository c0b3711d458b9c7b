package demo

import (
	"bytes"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// What is shown can be pasted: the shell must read the words that were meant.
func TestACommandCanBePasted(t *testing.T) {
	t.Parallel()
	words := []string{
		"printf", `%s\n`, "plain", "two words", "http://127.0.0.1/v1/payments?reference=a&b", `{"note":"it's so"}`, "Bearer $PERSON", `a "b" \\ $PERSON`,
	}
	var shown bytes.Buffer
	(&narrator{out: &shown}).command(append([]string{"PERSON=$OTHER"}, words...)...)
	line := strings.TrimPrefix(strings.TrimSpace(shown.String()), "$ ")
	assigned, rest, _ := strings.Cut(line, " ")
	cmd := exec.Command("sh", "-c", assigned+"; "+rest)
	cmd.Env = []string{"OTHER=secret", "PATH=/usr/bin:/bin"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := slices.Concat(words[2:6], []string{"Bearer secret", `a "b" \\ secret`})
	if got := strings.Split(strings.TrimSpace(string(out)), "\n"); !slices.Equal(got, want) {
		t.Errorf("the shell reads %q, want %q", got, want)
	}
}

func TestAClaimThatDoesNotHoldIsAnError(t *testing.T) {
	t.Parallel()
	var shown bytes.Buffer
	n := &narrator{out: &shown}
	if err := n.claim(true, "%d is %d", 1, 1); err != nil {
		t.Error(err)
	}
	err := n.claim(false, "%d is %d", 1, 2)
	if broken, ok := errors.AsType[*Broken](err); !ok || broken.Claim != "1 is 2" {
		t.Errorf("%v", err)
	}
	if got := shown.String(); got != "        ✓ 1 is 1\n        ✗ 1 is 2\n" {
		t.Errorf("%q", got)
	}
}

func TestMoneyIsShownExactly(t *testing.T) {
	t.Parallel()
	for cents, want := range map[int64]string{0: "0.00 USD", 5: "0.05 USD", 420000: "4,200.00 USD", 840001: "8,400.01 USD"} {
		if got := dollars(cents); got != want {
			t.Errorf("%d cents are shown as %s, want %s", cents, got, want)
		}
	}
}
