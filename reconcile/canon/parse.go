package canon

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Limits of a document; each is stated in the error that enforces it.
const (
	MaxDepth    = 128     // nested arrays and objects; real calls stay under ten
	MaxDigits   = 1000    // digits of one number
	MaxExponent = 400     // power of ten of a normalised number, either way: past any float64
	MaxValues   = 500_000 // values in one document: bounds memory at about 32 MB
)

// Parse reads exactly one JSON document (RFC 8259). Beyond the grammar it refuses
// invalid UTF-8, two members of one name (compared unescaped and in NFC) and
// anything past the limits above. Escaped lone surrogates and \u0000 are accepted.
// The error is always an [*Error]. raw is not kept.
func Parse(raw []byte) (*Value, error) {
	p := parser{src: string(raw)}
	v, err := p.document()
	if err != nil {
		err.Pointer = pointer(p.inward)
		return nil, err
	}
	return &v, nil
}

// ParseObject is [Parse] for documents that must be an object, as arguments are.
func ParseObject(raw []byte) (*Value, error) {
	v, err := Parse(raw)
	if err != nil {
		return nil, err
	}
	if v.kind == Object {
		return v, nil
	}
	// Model APIs hand tool arguments over as text. Hashing that text would give one
	// call two keys, one per spelling, so it is refused with the cure.
	if v.kind == String {
		if inner, err := Parse([]byte(v.text)); err == nil && inner.kind == Object {
			return nil, &Error{Problem: "this is a JSON string that contains an object: send the object itself"}
		}
	}
	return nil, &Error{Problem: "must be an object, not " + v.kind.String()}
}

type parser struct {
	src    string
	pos    int
	depth  int
	values int

	inward []string // after an error: where it was, innermost segment first
	open   []Value  // the children of every container that is still open
	arena  []Value  // room for the children of closed containers
}

func (p *parser) fail(offset int, problem string) *Error {
	return &Error{Offset: int64(offset), Problem: problem}
}

func (p *parser) document() (Value, *Error) {
	if strings.HasPrefix(p.src, "\uFEFF") {
		return Value{}, p.fail(0, "starts with a byte order mark")
	}
	p.space()
	v, err := p.value()
	if err != nil {
		return v, err
	}
	p.space()
	if p.pos < len(p.src) {
		return v, p.fail(p.pos, "data follows the end of the document")
	}
	return v, nil
}

func (p *parser) space() {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// next is the byte at the position, 0 at the end. A NUL byte in the source is
// refused everywhere, so the two never need to be told apart.
func (p *parser) next() byte {
	if p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return 0
}

func (p *parser) value() (Value, *Error) {
	if p.values++; p.values > MaxValues {
		return Value{}, p.fail(p.pos, "more than "+strconv.Itoa(MaxValues)+" values")
	}
	switch c := p.next(); {
	case c == '{':
		return p.container(Object, '}')
	case c == '[':
		return p.container(Array, ']')
	case c == '"':
		s, err := p.text()
		return Value{kind: String, text: s}, err
	case c == '-' || '0' <= c && c <= '9':
		s, err := p.number()
		return Value{kind: Number, text: s}, err
	case p.word("null"):
		return Value{kind: Null}, nil
	case p.word("true"):
		return Value{kind: Bool, yes: true}, nil
	case p.word("false"):
		return Value{kind: Bool}, nil
	}
	return Value{}, p.fail(p.pos, p.noValue())
}

func (p *parser) word(w string) bool {
	if strings.HasPrefix(p.src[p.pos:], w) {
		p.pos += len(w)
		return true
	}
	return false
}

func (p *parser) noValue() string {
	rest := p.src[p.pos:]
	switch {
	case rest == "":
		return "ends where a value is expected"
	case strings.HasPrefix(rest, "NaN"), strings.HasPrefix(rest, "Infinity"):
		return "NaN and Infinity are not JSON"
	}
	return "a value is expected"
}

func (p *parser) container(kind Kind, end byte) (v Value, err *Error) {
	v.kind = kind
	if p.depth++; p.depth > MaxDepth {
		return v, p.fail(p.pos, "nested deeper than "+strconv.Itoa(MaxDepth)+" levels")
	}
	p.pos++
	first := len(p.open)
	var seen names
	for p.space(); p.next() != end; p.space() {
		if len(p.open) > first {
			if p.next() != ',' {
				return v, p.fail(p.pos, "a comma or the end of "+kind.String()+" is expected")
			}
			p.pos++
			p.space()
		}
		name := ""
		if kind == Object {
			at := p.pos
			if name, err = p.memberName(); err != nil {
				return v, err
			}
			if seen.add(name, p.open[first:]) {
				p.inward = append(p.inward, name)
				return v, p.fail(at, "a second member of this name (names are compared unescaped and in Unicode NFC)")
			}
		}
		child, err := p.value()
		if err != nil {
			if kind == Array {
				name = strconv.Itoa(len(p.open) - first)
			}
			p.inward = append(p.inward, name)
			return v, err
		}
		child.name = name
		p.open = append(p.open, child)
	}
	p.pos++
	p.depth--
	v.kids = p.keep(p.open[first:])
	p.open = p.open[:first]
	return v, nil
}

func (p *parser) memberName() (string, *Error) {
	if p.next() != '"' {
		return "", p.fail(p.pos, "a member name in double quotes is expected")
	}
	name, err := p.text()
	if err != nil {
		return "", err
	}
	p.space()
	if p.next() != ':' {
		return "", p.fail(p.pos, "a colon is expected after a member name")
	}
	p.pos++
	p.space()
	return norm.NFC.String(name), nil
}

// keep moves children into the arena: a handful of allocations a document instead
// of one per container.
func (p *parser) keep(children []Value) []Value {
	n := len(children)
	if n == 0 {
		return nil
	}
	if cap(p.arena)-len(p.arena) < n {
		// A value takes eight bytes of source or more in typical arguments.
		p.arena = make([]Value, 0, max(n, min(len(p.src)/8, 256)))
	}
	at := len(p.arena)
	p.arena = append(p.arena, children...)
	return p.arena[at : at+n : at+n]
}

// names finds a repeated member name: by comparing while the object is small, by a
// map afterwards.
type names struct{ set map[string]struct{} }

func (n *names) add(name string, members []Value) (repeated bool) {
	const small = 16
	if len(members) < small {
		for i := range members {
			if members[i].name == name {
				return true
			}
		}
		return false
	}
	if n.set == nil {
		n.set = make(map[string]struct{}, 2*small)
		for i := range members {
			n.set[members[i].name] = struct{}{}
		}
	}
	_, repeated = n.set[name]
	n.set[name] = struct{}{}
	return repeated
}

// text reads the string at the position. Without escapes it is a part of the source
// and costs nothing.
func (p *parser) text() (string, *Error) {
	start := p.pos + 1
	var high byte
	for i := start; i < len(p.src); i++ {
		switch c := p.src[i]; {
		case c == '"':
			s := p.src[start:i]
			if high >= utf8.RuneSelf && !utf8.ValidString(s) {
				return "", p.fail(start+invalidAt(s), "invalid UTF-8")
			}
			p.pos = i + 1
			return s, nil
		case c == '\\':
			return p.escaped(start, i)
		case c < ' ':
			return "", p.fail(i, "a control character in a string must be escaped")
		default:
			high |= c
		}
	}
	return "", p.fail(len(p.src), "ends inside a string")
}

func invalidAt(s string) int {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return i
			}
		}
	}
	return len(s)
}
