package views

import (
	"strings"
	"unicode"
)

// initials are at most two letters of a name.
func initials(name string) string {
	var out []rune
	for _, w := range strings.Fields(name) {
		for _, r := range w {
			if unicode.IsLetter(r) {
				out = append(out, unicode.ToUpper(r))
			}
			break
		}
		if len(out) == 2 {
			break
		}
	}
	if len(out) == 0 {
		return "·"
	}
	return string(out)
}

// plain is a text without its marks, for names that only a screen reader says.
func plain(t Text) string {
	var b strings.Builder
	for _, p := range t {
		b.WriteString(p.Text)
	}
	return b.String()
}

// label is the heading of a column, for rows that stand without one on a phone.
func label(head []Cell, i int) string {
	if i == 0 || i >= len(head) {
		return ""
	}
	return plain(head[i].Text)
}
