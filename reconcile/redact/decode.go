package redact

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// decoded is the text of a JSON string and, for each of its bytes, where in the source
// that byte's character begins: what is found in the text is cut out of the source.
type decoded struct {
	text    []byte
	offsets []int // nil where text and source are the same
	end     int
}

// at is the source position of a position in the text.
func (d decoded) at(i int) int {
	switch {
	case d.offsets == nil:
		return i
	case i == len(d.text):
		return d.end
	}
	return d.offsets[i]
}

// decode reads the content of a string that is known to be valid. A lone surrogate
// becomes U+FFFD: it is only looked at, never written.
func decode(s string) decoded {
	if strings.IndexByte(s, '\\') < 0 {
		return decoded{text: []byte(s)}
	}
	d := decoded{offsets: make([]int, 0, len(s)), end: len(s)}
	for i := 0; i < len(s); {
		from, size := i, 1
		if s[i] != '\\' {
			d.text = append(d.text, s[i])
		} else if c := s[i+1]; c != 'u' {
			d.text = append(d.text, unescaped(c))
			size = 2
		} else {
			r := hex4(s[i:])
			size = 6
			if utf16.IsSurrogate(r) && strings.HasPrefix(s[i+6:], `\u`) {
				if pair := utf16.DecodeRune(r, hex4(s[i+6:])); pair != utf8.RuneError {
					r, size = pair, 12
				}
			}
			d.text = utf8.AppendRune(d.text, r)
		}
		for len(d.offsets) < len(d.text) {
			d.offsets = append(d.offsets, from)
		}
		i += size
	}
	return d
}

func unescaped(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// hex4 reads the \uXXXX that s starts with.
func hex4(s string) rune {
	n, _ := strconv.ParseUint(s[2:6], 16, 16)
	return rune(n)
}

// escapeQuotes makes a replacement fit to stand in a string. It can only hold quotes and
// backslashes that need it.
func escapeQuotes(s string) string {
	if !strings.ContainsAny(s, `"\`) {
		return s
	}
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s)
}
