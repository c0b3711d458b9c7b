package canon

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// escaped finishes the string that began at start and has its first backslash at i.
func (p *parser) escaped(start, i int) (string, *Error) {
	buf := make([]byte, 0, i-start+32)
	buf = append(buf, p.src[start:i]...)
	plain := start // the source up to i is checked for UTF-8 in runs between escapes
	check := func(end int) *Error {
		if run := p.src[plain:end]; !utf8.ValidString(run) {
			return p.fail(plain+invalidAt(run), "invalid UTF-8")
		}
		return nil
	}
	for i < len(p.src) {
		switch c := p.src[i]; {
		case c == '"':
			if err := check(i); err != nil {
				return "", err
			}
			p.pos = i + 1
			return string(buf), nil
		case c < ' ':
			return "", p.fail(i, "a control character in a string must be escaped")
		case c != '\\':
			buf = append(buf, c)
			i++
		default:
			if err := check(i); err != nil {
				return "", err
			}
			var err *Error
			if buf, i, err = p.escape(buf, i); err != nil {
				return "", err
			}
			plain = i
		}
	}
	return "", p.fail(len(p.src), "ends inside a string")
}

// escape appends what the escape at i stands for and returns the position after it.
func (p *parser) escape(buf []byte, i int) ([]byte, int, *Error) {
	if i+1 >= len(p.src) {
		return buf, i, p.fail(i, "ends inside a string")
	}
	switch c := p.src[i+1]; c {
	case '"', '\\', '/':
		return append(buf, c), i + 2, nil
	case 'b':
		return append(buf, '\b'), i + 2, nil
	case 'f':
		return append(buf, '\f'), i + 2, nil
	case 'n':
		return append(buf, '\n'), i + 2, nil
	case 'r':
		return append(buf, '\r'), i + 2, nil
	case 't':
		return append(buf, '\t'), i + 2, nil
	case 'u':
		r, ok := p.hex4(i)
		if !ok {
			return buf, i, p.fail(i, `four hexadecimal digits are expected after \u`)
		}
		if !utf16.IsSurrogate(r) {
			return utf8.AppendRune(buf, r), i + 6, nil
		}
		if low, ok := p.hex4(i + 6); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return utf8.AppendRune(buf, pair), i + 12, nil
			}
		}
		// A lone surrogate: the three bytes UTF-8 would give it, had it one (WTF-8).
		// No valid text contains them, so it equals nothing but itself.
		return append(buf, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F), i + 6, nil
	}
	return buf, i, p.fail(i, "an unknown escape")
}

// hex4 reads the \uXXXX at i.
func (p *parser) hex4(i int) (rune, bool) {
	if i+6 > len(p.src) || p.src[i] != '\\' || p.src[i+1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(p.src[i+2:i+6], 16, 16)
	return rune(n), err == nil
}
