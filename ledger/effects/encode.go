package effects

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"quittance/ledger"
)

// object is a JSON object under construction. Empty values are left out, which reads
// back as NULL.
type object struct{ b []byte }

func (o *object) open()  { o.b = append(o.b, '{') }
func (o *object) close() { o.b = append(o.b, '}') }

func (o *object) name(n string) {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(o.b, '"')
	o.b = append(o.b, n...)
	o.b = append(o.b, '"', ':')
}

func (o *object) text(name, v string) {
	if v == "" {
		return
	}
	o.name(name)
	// What is stored was checked to be UTF-8; a stray byte becomes U+FFFD.
	b, err := jsontext.AppendQuote(o.b, v)
	if err != nil && len(b) == len(o.b) {
		b = append(b, '"', '"')
	}
	o.b = b
}

func (o *object) number(name string, v int64) {
	o.name(name)
	o.b = strconv.AppendInt(o.b, v, 10)
}

func (o *object) yes(name string, v bool) {
	o.name(name)
	o.b = strconv.AppendBool(o.b, v)
}

func (o *object) time(name string, v ledger.Time) {
	if v.IsZero() {
		return
	}
	o.name(name)
	o.b = append(o.b, '"')
	o.b = appendTime(o.b, v.UTC())
	o.b = append(o.b, '"')
}

// appendTime writes an RFC 3339 time in UTC with six digits of a second.
func appendTime(b []byte, t time.Time) []byte {
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	b = digits(b, year, 4)
	b = digits(append(b, '-'), int(month), 2)
	b = digits(append(b, '-'), day, 2)
	b = digits(append(b, 'T'), hour, 2)
	b = digits(append(b, ':'), minute, 2)
	b = digits(append(b, ':'), second, 2)
	b = digits(append(b, '.'), t.Nanosecond()/1000, 6)
	return append(b, 'Z')
}

func digits(b []byte, n, width int) []byte {
	var d [6]byte
	for i := width - 1; i >= 0; i-- {
		d[i] = byte('0' + n%10)
		n /= 10
	}
	return append(b, d[:width]...)
}

func (o *object) bytes(name string, v []byte) {
	if v == nil {
		return
	}
	o.name(name)
	o.b = append(o.b, `"\\x`...)
	const hex = "0123456789abcdef"
	for _, c := range v {
		o.b = append(o.b, hex[c>>4], hex[c&15])
	}
	o.b = append(o.b, '"')
}
