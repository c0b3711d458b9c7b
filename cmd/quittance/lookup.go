package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"quittance/reconcile/access"
	"quittance/reconcile/effects"
	"quittance/reconcile/lookup"
)

type lookupCmd struct {
	Test lookupTestCmd `cmd:"" help:"Ask a tool's downstream about a business key, and show what its answer proves."`
}

type lookupTestCmd struct {
	dataFlag
	Policy string `help:"The policy file whose look-up is tested." type:"existingfile" required:"" placeholder:"FILE"`
	Tool   string `arg:"" help:"The tool, as the policy names it."`
	Key    string `arg:"" help:"A business key that exists, whole."`
}

// Run asks as the server would, from here and with this environment's secrets, and changes
// nothing but the audit trail. It fails where the look-up could not check.
func (c *lookupTestCmd) Run(ctx context.Context, env environment, out output) (err error) {
	rules, err := loadPolicy(c.Policy)
	if err != nil {
		return err
	}
	db, done, err := openDatabase(ctx, env, c.dataFlag)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	engine, err := effects.Reading(ctx, db, rules)
	if err != nil {
		return err
	}
	got, err := engine.TryLookup(ctx, c.Tool, c.Key)
	if refusal, ok := errors.AsType[*effects.Refusal](err); ok {
		return errors.New(refusal.Detail)
	}
	if err != nil {
		return err
	}
	row := access.MadeBy{}.Row("lookup.test", "tool:"+c.Tool)
	row.Note = "business key " + c.Key + ": " + got.Look.Says()
	if err := access.New(db).Record(ctx, row); err != nil {
		return err
	}
	if err := tell(out, got); err != nil {
		return err
	}
	if got.Look.Reason == lookup.CouldNot {
		return errors.New("the look-up could not check")
	}
	return nil
}

// tell writes a trial for people.
func tell(w io.Writer, t effects.Trial) error {
	var b strings.Builder
	row := func(name, format string, values ...any) {
		text := printable(fmt.Sprintf(format, values...))
		fmt.Fprintf(&b, "%-10s %s\n", name, strings.ReplaceAll(text, "\n", "\n           "))
	}
	l := t.Look
	row("verdict", "%s (%s): %s", strings.ReplaceAll(l.Verdict, "_", " "), l.Reason, l.Why)
	if t.Effect != "" {
		row("about", "the latest call with this key, %s", t.Effect)
	} else {
		row("about", "the key alone, as if sent a day ago: no call with it is on record")
	}
	row("asked", "%s", l.Request)
	row("answer", "status %d, %d ms, %d page(s), SHA-256 %s", l.Status, l.Latency.Milliseconds(), l.Pages, l.BodyDigest)
	for _, r := range l.Records {
		row("found", "%s", recordLine(r))
	}
	for _, c := range l.Conditions {
		row(conditionMark(c), "%s", c.Why+from(c.Earliest, c.Met))
	}
	if !l.Earliest.IsZero() {
		row("provable", "not taken, at the earliest from %s", l.Earliest.UTC().Format(time.RFC3339))
	}
	if len(t.Result) > 0 {
		row("result", "%s", t.Result)
	}
	if l.Excerpt != "" {
		row("excerpt", "%s", l.Excerpt)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func recordLine(r lookup.Judged) string {
	words := []string{r.Reference}
	if r.Reference == "" {
		words[0] = "(no reference)"
	}
	if r.Amount != "" {
		words = append(words, strings.TrimSpace(r.Amount+" "+r.Currency))
	}
	if r.State != "" {
		words = append(words, r.State)
	}
	for _, m := range []struct {
		is   bool
		word string
	}{
		{r.Match, "matches"}, {!r.Match && !r.Possible, "differs"}, {r.Final, "final"}, {!r.Final && !r.Possible, "not final"}, {r.Ours, "carries our key"}, {r.Possible, "possible, without our key"},
		{r.Never, "cancelled for good"}, {r.Reversed, "the money came back"}, {r.Foreign, "another effect's, or not ours"},
	} {
		if m.is {
			words = append(words, m.word)
		}
	}
	return strings.Join(words, ", ")
}

func conditionMark(c lookup.Condition) string {
	switch {
	case c.Met:
		return "met"
	case c.Never:
		return "never"
	}
	return "not yet"
}

func from(at time.Time, met bool) string {
	if met || at.IsZero() {
		return ""
	}
	return " From " + at.UTC().Format(time.RFC3339) + "."
}

// printable keeps what came from outside from steering the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}
