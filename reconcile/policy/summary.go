package policy

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"quittance/reconcile/canon"
	"quittance/reconcile/policy/read"
)

// maxShown keeps one argument from filling a queue row; in characters.
const maxShown = 120

// Summary says in a line what the call is, with "[field]" for a missing argument. An
// amount that can be read is shown in its currency's usual unit whatever unit the
// agent sends. The line is valid UTF-8 without control characters.
func (t *Tool) Summary(args *canon.Value) string {
	if t.summary == nil {
		return t.plainSummary(args)
	}
	return t.filled(*t.summary, args)
}

// filled is a template with the arguments as people read them.
func (t *Tool) filled(tpl read.Template, args *canon.Value) string {
	var b strings.Builder
	for _, p := range tpl.Parts {
		if p.Path == "" {
			b.WriteString(p.Text)
			continue
		}
		b.WriteString(t.shown(p.Path, args.Lookup(p.Path), args))
	}
	return b.String()
}

// shown is v, the argument at path, as people read it.
func (t *Tool) shown(path string, v, args *canon.Value) string {
	s, ok := read.Scalar(v)
	if !ok || s == "" {
		return "[" + path + "]"
	}
	if t.amount == nil || path != t.amount.value {
		return visible(s)
	}
	// 420000 cents beside USD would be read as a hundred times the money.
	if a, _ := t.Amount(args); a != nil {
		return a.String()
	}
	if t.amount.minor {
		return visible(s) + " (in its smallest unit)"
	}
	return visible(s)
}

// plainSummary is for tools without a summary: "Send payment (vendor: ACME, …)".
func (t *Tool) plainSummary(args *canon.Value) string {
	const most = 4
	words := strings.FieldsFunc(visible(t.Name), func(r rune) bool { return r == '_' || r == '-' || r == '.' || r == ' ' })
	name := strings.Join(words, " ")
	if r, size := utf8.DecodeRuneInString(name); size > 0 {
		name = string(unicode.ToUpper(r)) + name[size:]
	}
	var said []string
	for field, v := range args.Members() {
		if _, ok := read.Scalar(v); !ok {
			continue
		}
		if len(said) == most {
			said = append(said, "…")
			break
		}
		said = append(said, visible(field)+": "+t.shown(field, v, args))
	}
	if len(said) == 0 {
		return name
	}
	return name + " (" + strings.Join(said, ", ") + ")"
}

// visible makes text fit to stand in a line: what does not print, such as NUL, line
// breaks, lone surrogates and direction marks, is shown as an escape, and a long text is
// cut.
func visible(s string) string {
	var b strings.Builder
	n := 0
	for i := 0; i < len(s); n++ {
		if n == maxShown {
			b.WriteString("…")
			break
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		const joiner = '\u200d' // holds families and flags of emoji together
		switch {
		case r == utf8.RuneError && size == 1 && i+3 <= len(s): // a lone surrogate, see canon
			fmt.Fprintf(&b, `\u%04x`, rune(s[i]&0x0F)<<12|rune(s[i+1]&0x3F)<<6|rune(s[i+2]&0x3F))
			size = 3
		case unicode.IsPrint(r) || r == joiner:
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += size
	}
	return b.String()
}
