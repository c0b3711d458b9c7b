package desk

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"quittance/views"
)

// shownJSON is how much of a call's JSON a page shows, in bytes; the rest is a
// download.
const shownJSON = 16 << 10

// prettyJSON lays JSON out for reading without changing what it says: numbers stay as
// they are spelt, members in their order, and escapes become their character only where
// that can be seen. cut tells that only a head is shown.
func prettyJSON(raw []byte, limit int) (text views.Text, cut bool) {
	var b strings.Builder
	depth := 0
	indent := func() {
		b.WriteByte('\n')
		for range min(depth, 40) {
			b.WriteString("  ")
		}
	}
	for i := 0; i < len(raw); {
		if b.Len() > limit {
			cut = true
			break
		}
		switch c := raw[i]; c {
		case '{', '[':
			b.WriteByte(c)
			i++
			for i < len(raw) && isSpace(raw[i]) {
				i++
			}
			if i < len(raw) && (raw[i] == '}' || raw[i] == ']') {
				b.WriteByte(raw[i])
				i++
				continue
			}
			depth++
			indent()
		case '}', ']':
			depth--
			indent()
			b.WriteByte(c)
			i++
		case ',':
			b.WriteByte(c)
			indent()
			i++
		case ':':
			b.WriteString(": ")
			i++
		case '"':
			end := stringEnd(raw, i)
			piece := raw[i:end]
			if len(piece) > limit {
				piece, cut = raw[i:i+limit], true
			}
			b.WriteString(readable(string(piece)))
			i = end
			if cut {
				b.WriteString("…")
				return show(b.String(), limit*2, true), true
			}
		default:
			if !isSpace(c) {
				b.WriteByte(c)
			}
			i++
		}
	}
	if cut {
		b.WriteString("\n…")
	}
	return show(b.String(), limit*2, true), cut
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// stringEnd is the index behind the string that starts at i.
func stringEnd(raw []byte, i int) int {
	for j := i + 1; j < len(raw); j++ {
		switch raw[j] {
		case '\\':
			j++
		case '"':
			return j + 1
		}
	}
	return len(raw)
}

// readable replaces \uXXXX by its character where a reader can see that character.
func readable(s string) string {
	if !strings.Contains(s, `\u`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] == '\\' && i+1 < len(s) && s[i+1] != 'u' {
			b.WriteString(s[i : i+2])
			i += 2
			continue
		}
		r, size := escapedRune(s[i:])
		switch {
		case size == 0:
			b.WriteByte(s[i])
			i++
		case r != utf8.RuneError && r >= ' ' && r != '"' && r != '\\' && !hidden(r, 0, 0):
			b.WriteRune(r)
			i += size
		default:
			b.WriteString(s[i : i+size])
			i += size
		}
	}
	return b.String()
}

// escapedRune reads \uXXXX, or a pair of them, at the start of s; size 0 when there is
// none. Half a pair is utf8.RuneError.
func escapedRune(s string) (r rune, size int) {
	one := func(s string) (rune, bool) {
		if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
			return 0, false
		}
		n, err := strconv.ParseUint(s[2:6], 16, 32)
		return rune(n), err == nil
	}
	a, ok := one(s)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(a) {
		return a, 6
	}
	if b, ok := one(s[6:]); ok {
		if r := utf16.DecodeRune(a, b); r != utf8.RuneError {
			return r, 12
		}
	}
	return utf8.RuneError, 6
}

// code shows JSON, with a link to all of it when it is too much for a page.
func code(raw []byte, download string) views.Code {
	text, cut := prettyJSON(raw, shownJSON)
	c := views.Code{Text: text}
	if cut {
		c.Cut = fmt.Sprintf("This is the first part of %s.", bytesText(int64(len(raw))))
		c.Download = download
	}
	return c
}

func bytesText(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d bytes", n)
	case n < 10_000_000:
		return fmt.Sprintf("%d kB", n/1000)
	}
	return fmt.Sprintf("%d MB", n/1_000_000)
}

// differencesShown bounds the list of places where two calls differ.
const differencesShown = 20

// differences compares two calls leaf by leaf. same tells that nothing differs.
func differences(here, there []byte) (list []views.Difference, same bool) {
	if len(here) > 1<<20 || len(there) > 1<<20 {
		return nil, false
	}
	a, b := leaves(here), leaves(there)
	if a == nil || b == nil {
		return nil, false
	}
	paths := make([]string, 0, len(a))
	for p, v := range a {
		if w, ok := b[p]; !ok || v != w {
			paths = append(paths, p)
		}
	}
	for p := range b {
		if _, ok := a[p]; !ok {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	for i, p := range paths {
		if i == differencesShown {
			list = append(list, views.Difference{Where: line(fmt.Sprintf("and %d more", len(paths)-i))})
			break
		}
		list = append(list, views.Difference{Where: line(p), Here: leaf(a, p), There: leaf(b, p)})
	}
	return list, len(paths) == 0
}

func leaf(m map[string]string, path string) views.Text {
	v, ok := m[path]
	if !ok {
		return line("(not there)")
	}
	return line(v)
}

// leaves flattens JSON to its scalar values by path, numbers as they are spelt.
func leaves(raw []byte) map[string]string {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	out := map[string]string{}
	flatten(out, "", v)
	return out
}

func flatten(out map[string]string, path string, v any) {
	join := func(name string) string {
		if path == "" {
			return name
		}
		return path + "." + name
	}
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			flatten(out, join(k), x)
		}
		if len(v) == 0 {
			out[path] = "{}"
		}
	case []any:
		for i, x := range v {
			flatten(out, join(strconv.Itoa(i)), x)
		}
		if len(v) == 0 {
			out[path] = "[]"
		}
	case string:
		out[path] = v
	case json.Number:
		out[path] = v.String()
	case nil:
		out[path] = "null"
	default:
		out[path] = fmt.Sprint(v)
	}
}
