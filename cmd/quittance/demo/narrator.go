package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// narrator writes what happens, with the seconds since its part began.
type narrator struct {
	out   io.Writer
	began time.Time
}

func (n *narrator) title(number int, text string) {
	n.began = time.Now()
	fmt.Fprintf(n.out, "\n%d. %s\n\n", number, text)
}

// say writes a sentence about what has just happened.
func (n *narrator) say(format string, args ...any) {
	fmt.Fprintf(n.out, "%6.2f s  %s\n", time.Since(n.began).Seconds(), fmt.Sprintf(format, args...))
}

// command writes a command as it can be pasted into a shell. A word may name a variable,
// which secrets are shown as.
func (n *narrator) command(words ...string) {
	quoted := make([]string, len(words))
	for i, w := range words {
		switch {
		case strings.Contains(w, "=$"): // for the environment of the command that follows
			quoted[i] = w
		case strings.Contains(w, "$"):
			quoted[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`").Replace(w) + `"`
		case strings.Trim(w, plain) != "":
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		default:
			quoted[i] = w
		}
	}
	fmt.Fprintf(n.out, "          $ %s\n", strings.Join(quoted, " "))
}

// plain characters mean nothing to a shell.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,"

// Broken is a claim of the demo that did not hold.
type Broken struct{ Claim string }

func (b *Broken) Error() string { return "this did not hold: " + b.Claim }

// claim writes what was found to be true, or fails with a [*Broken].
func (n *narrator) claim(holds bool, format string, args ...any) error {
	text, mark := fmt.Sprintf(format, args...), "✓"
	if !holds {
		mark = "✗"
	}
	fmt.Fprintf(n.out, "        %s %s\n", mark, text)
	if !holds {
		return &Broken{text}
	}
	return nil
}
