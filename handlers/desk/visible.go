package desk

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"quittance/views"
)

// Limits of what a line shows; the whole is one click away.
const (
	lineLimit = 200    // characters of a summary, a name, a run
	textLimit = 20_000 // characters of a note
)

// escaped matches the escapes that a stored summary already holds for characters that
// do not print.
var escaped = regexp.MustCompile(`\\u[0-9a-f]{4,6}`)

// line shows text in one line, cut to a readable length.
func line(s string) views.Text { return show(s, lineLimit, false) }

// note shows text that may have line breaks.
func note(s string) views.Text { return show(s, textLimit, true) }

// show cuts text into pieces, so that what a reader would not see, or would take for
// something else, stands out: invisible and control characters as their code, and
// words that mix scripts whose letters look alike.
func show(s string, limit int, breaks bool) views.Text {
	var out views.Text
	var plain strings.Builder
	flush := func() {
		if plain.Len() > 0 {
			out = appendWords(out, plain.String())
			plain.Reset()
		}
	}
	n := 0
	var before rune
	for i, r := range s {
		if n++; n > limit {
			plain.WriteString("…")
			break
		}
		size := utf8.RuneLen(r)
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			flush()
			out = append(out, views.Piece{Text: fmt.Sprintf("\\x%02x", s[i]), Mark: "a byte that is not text"})
			continue
		}
		next := rune(0)
		if size > 0 && i+size < len(s) {
			next, _ = utf8.DecodeRuneInString(s[i+size:])
		}
		switch {
		case breaks && (r == '\n' || r == '\t'), !hidden(r, before, next):
			plain.WriteRune(r)
		default:
			flush()
			out = append(out, views.Piece{Text: fmt.Sprintf("U+%04X", r), Mark: nameOf(r)})
		}
		before = r
	}
	flush()
	return out
}

// hidden tells whether a reader could not see r between its neighbours. Joiners are
// part of honest Persian, Hindi and emoji, so there they may stay.
func hidden(r, before, next rune) bool {
	switch r {
	case '\u200c', '\u200d':
		return !joins(before) || !joins(next)
	case '\u115f', '\u1160', '\u3164', '\uffa0', '\u2800', '\u034f', '\u17b4', '\u17b5':
		return true
	case '\u00a0', '\u202f', '\u3000':
		return false
	}
	return !unicode.IsPrint(r) && !unicode.Is(unicode.Zs, r)
}

var joined = []*unicode.RangeTable{
	unicode.Arabic, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil,
	unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Mongolian, unicode.So, unicode.Mn, unicode.Sk,
}

func joins(r rune) bool { return unicode.In(r, joined...) }

func nameOf(r rune) string {
	switch {
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c:
		return "turns the direction of the text"
	case r == 0x200b, r == 0x2060, r == 0xfeff, r == 0x200c, r == 0x200d, r == 0x00ad:
		return "takes no room: it cannot be seen"
	case unicode.IsControl(r):
		return "a control character"
	}
	return "cannot be seen"
}

// appendWords adds visible text, marking escapes that were made before it was stored
// and words that mix alphabets.
func appendWords(out views.Text, s string) views.Text {
	last := 0
	for _, at := range escaped.FindAllStringIndex(s, -1) {
		out = appendMixed(out, s[last:at[0]])
		out = append(out, views.Piece{Text: s[at[0]:at[1]], Mark: "a character that cannot be seen"})
		last = at[1]
	}
	return appendMixed(out, s[last:])
}

func appendMixed(out views.Text, s string) views.Text {
	start := 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if !unicode.IsLetter(r) {
			i += size
			continue
		}
		end := i
		for end < len(s) {
			r, size := utf8.DecodeRuneInString(s[end:])
			if !unicode.IsLetter(r) && !unicode.IsMark(r) {
				break
			}
			end += size
		}
		if scripts := lookalikes(s[i:end]); scripts != "" {
			if start < i {
				out = append(out, views.Piece{Text: s[start:i]})
			}
			out = append(out, views.Piece{Text: s[i:end], Mark: "mixes " + scripts + " letters, which look alike"})
			start = end
		}
		i = end
	}
	if start < len(s) {
		out = append(out, views.Piece{Text: s[start:]})
	}
	return out
}

// lookalikes names the alphabets a word mixes, "" when it is of one.
func lookalikes(word string) string {
	var found []string
	for _, s := range []struct {
		name  string
		table *unicode.RangeTable
	}{{"Latin", unicode.Latin}, {"Cyrillic", unicode.Cyrillic}, {"Greek", unicode.Greek}, {"Armenian", unicode.Armenian}} {
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.Is(s.table, r) }) {
			found = append(found, s.name)
		}
	}
	if len(found) < 2 {
		return ""
	}
	return strings.Join(found, " and ")
}

// odd tells whether any piece of a text had to be marked.
func odd(t views.Text) bool {
	for _, p := range t {
		if p.Mark != "" {
			return true
		}
	}
	return false
}
