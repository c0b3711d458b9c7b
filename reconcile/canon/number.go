package canon

import (
	"strconv"
	"strings"
)

// number checks the literal at the position against the grammar and the limits and
// returns it as sent.
func (p *parser) number() (string, *Error) {
	start := p.pos
	if p.next() == '-' {
		p.pos++
	}
	intDigits := p.digits()
	switch {
	case intDigits == 0 && p.word("Infinity"):
		return "", p.fail(start, "NaN and Infinity are not JSON")
	case intDigits == 0:
		return "", p.fail(p.pos, "a digit is expected")
	case intDigits > 1 && p.src[p.pos-intDigits] == '0':
		return "", p.fail(start, "a number must not start with a needless zero")
	}
	fracDigits := 0
	if p.next() == '.' {
		p.pos++
		if fracDigits = p.digits(); fracDigits == 0 {
			return "", p.fail(p.pos, "a digit is expected after the decimal point")
		}
	}
	if c := p.next(); c == 'e' || c == 'E' {
		p.pos++
		if c := p.next(); c == '+' || c == '-' {
			p.pos++
		}
		if p.digits() == 0 {
			return "", p.fail(p.pos, "a digit is expected in the exponent")
		}
	}
	if intDigits+fracDigits > MaxDigits {
		return "", p.fail(start, "a number of more than "+strconv.Itoa(MaxDigits)+" digits")
	}
	literal := p.src[start:p.pos]
	if d := parseDecimal(literal); d.exp > MaxExponent || d.exp < -MaxExponent {
		return "", p.fail(start, "a number whose exponent is beyond "+strconv.Itoa(MaxExponent))
	}
	return literal, nil
}

func (p *parser) digits() (n int) {
	for c := p.next(); '0' <= c && c <= '9'; c = p.next() {
		p.pos++
		n++
	}
	return n
}

// decimal is the exact value ±(head tail)·10^exp, where head and tail are the digits
// on both sides of where the point was, without zeros at either end. Zero has no
// digits, no sign and the exponent 0.
type decimal struct {
	neg        bool
	head, tail string
	exp        int
}

// parseDecimal splits a valid literal without allocating.
func parseDecimal(literal string) (d decimal) {
	mantissa := literal
	if i := strings.IndexAny(literal, "eE"); i >= 0 {
		mantissa, d.exp = literal[:i], exponent(literal[i+1:])
	}
	mantissa, d.neg = strings.CutPrefix(mantissa, "-")
	d.head, d.tail, _ = strings.Cut(mantissa, ".")
	d.exp -= len(d.tail)

	if d.head = strings.TrimLeft(d.head, "0"); d.head == "" {
		d.tail = strings.TrimLeft(d.tail, "0")
	}
	all := len(d.head) + len(d.tail)
	if d.tail = strings.TrimRight(d.tail, "0"); d.tail == "" {
		d.head = strings.TrimRight(d.head, "0")
	}
	d.exp += all - len(d.head) - len(d.tail)
	if d.head == "" && d.tail == "" {
		return decimal{}
	}
	return d
}

// exponent reads an exponent of any length, and stops counting where it is far out
// of bounds.
func exponent(s string) (n int) {
	digits := strings.TrimLeft(s, "+-")
	for i := 0; i < len(digits) && n < 1_000_000; i++ {
		n = n*10 + int(digits[i]-'0')
	}
	if s[0] == '-' {
		return -n
	}
	return n
}

// plain writes the number without an exponent.
func (d decimal) plain() string {
	digits := d.head + d.tail
	if digits == "" {
		return "0"
	}
	sign := ""
	if d.neg {
		sign = "-"
	}
	point := len(digits) + d.exp
	switch {
	case d.exp >= 0:
		return sign + digits + strings.Repeat("0", d.exp)
	case point > 0:
		return sign + digits[:point] + "." + digits[point:]
	}
	return sign + "0." + strings.Repeat("0", -point) + digits
}
