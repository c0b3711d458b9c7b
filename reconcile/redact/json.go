package redact

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"quittance/reconcile/canon"
)

// JSON replaces the secrets in a JSON document. pointers are RFC 6901 pointers in which
// * as a segment stands for any; what they point at is replaced whole, except null. keep
// are dotted paths of members that people must recognise: no card number is looked for in
// them.
//
// Everything else stays byte for byte as it was sent; a document without secrets is
// returned as it is, not copied. Numbers are replaced by name and pointer only, never
// because they look like a card number. The error says where raw is not JSON and nothing
// of what it says.
func (r *Redactor) JSON(raw []byte, pointers []string, keep []string) (out []byte, changed bool, err error) {
	w := &walk{r: r, dec: jsontext.NewDecoder(bytes.NewBuffer(raw), lenient...), src: raw, keep: keep}
	for _, p := range pointers {
		w.pointers = append(w.pointers, segments(p))
	}
	if err := w.document(); err != nil {
		return nil, false, fmt.Errorf("couldn't redact: not JSON near byte %d", w.dec.InputOffset())
	}
	return apply(raw, w.edits), len(w.edits) > 0, nil
}

// lenient: what may be stored is decided elsewhere; here nothing may slip past by being
// odd.
var lenient = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// maxInner is how many times JSON inside a string inside JSON is looked into.
const maxInner = 8

type walk struct {
	r        *Redactor
	dec      *jsontext.Decoder
	src      []byte
	path     []string // names and indices down to the value at hand
	pointers [][]string
	keep     []string
	inner    int // how many strings this document is inside of
	edits    []edit
}

func segments(pointer string) []string {
	list := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, s := range list {
		list[i] = strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
	}
	return list
}

var errTrailing = errors.New("data follows the document")

func (w *walk) document() error {
	if err := w.value(""); err != nil {
		return err
	}
	if _, err := w.dec.ReadToken(); err != io.EOF {
		return errTrailing
	}
	return nil
}

// value reads the next value, which is the member name or, in an array, the index the
// path ends with; name is of the member that holds it, through arrays.
func (w *walk) value(name string) error {
	kind := w.dec.PeekKind()
	if w.pointed() && kind != 'n' || kind != 'n' && kind != 't' && kind != 'f' && isSecretName(name) {
		return w.replace()
	}
	switch kind {
	case '{':
		return w.object()
	case '[':
		return w.array(name)
	case '"':
		return w.text(name)
	}
	_, err := w.dec.ReadValue()
	return err
}

func (w *walk) object() error {
	if _, err := w.dec.ReadToken(); err != nil {
		return err
	}
	for w.dec.PeekKind() == '"' {
		raw, err := w.dec.ReadValue()
		if err != nil {
			return err
		}
		name := string(raw[1 : len(raw)-1])
		if strings.IndexByte(name, '\\') >= 0 {
			name = string(decode(name).text)
		}
		w.path = append(w.path, name)
		if err := w.value(name); err != nil {
			return err
		}
		w.path = w.path[:len(w.path)-1]
	}
	_, err := w.dec.ReadToken()
	return err
}

func (w *walk) array(name string) error {
	if _, err := w.dec.ReadToken(); err != nil {
		return err
	}
	for i := 0; w.dec.PeekKind() != ']'; i++ {
		w.path = append(w.path, strconv.Itoa(i))
		if err := w.value(name); err != nil {
			return err
		}
		w.path = w.path[:len(w.path)-1]
	}
	_, err := w.dec.ReadToken()
	return err
}

func (w *walk) pointed() bool {
	for _, p := range w.pointers {
		if len(p) != len(w.path) {
			continue
		}
		match := true
		for i := range p {
			match = match && (p[i] == "*" || p[i] == w.path[i])
		}
		if match {
			return true
		}
	}
	return false
}

// replace takes the next value out whole. An empty string hides nothing and stays.
func (w *walk) replace() error {
	raw, err := w.dec.ReadValue()
	if err != nil {
		return err
	}
	end := int(w.dec.InputOffset())
	secret := secretOf(raw)
	if len(secret) == 0 || len(secret) == markerLen && marker.Match(secret) {
		return nil
	}
	w.edits = append(w.edits, edit{end - len(raw), end, `"` + w.r.replacement(secret) + `"`})
	return nil
}

// secretOf is what the replacement is made from: the text of a string, so that a secret
// is the same in a member and inside a line, and one form for every spelling of anything
// else.
func secretOf(raw []byte) []byte {
	v, err := canon.Parse(raw)
	if err != nil {
		return raw
	}
	if s, ok := v.Text(); ok {
		return []byte(s)
	}
	return v.AppendCanonical(nil)
}

// text looks inside a string: for JSON, and for secrets of recognisable form.
func (w *walk) text(name string) error {
	raw, err := w.dec.ReadValue()
	if err != nil {
		return err
	}
	end := int(w.dec.InputOffset())
	if len(raw)-2 < minSecret {
		return nil
	}
	body := end - len(raw) + 1 // where the string's content begins in the source
	d := decode(string(raw[1 : len(raw)-1]))
	text := string(d.text)
	edits, isJSON := w.innerJSON(text)
	if !isJSON {
		edits = w.r.inText(text, !w.keepsDigits(name, text))
	}
	for _, e := range edits {
		w.edits = append(w.edits, edit{body + d.at(e.start), body + d.at(e.end), escapeQuotes(e.text)})
	}
	return nil
}

// innerJSON redacts a string that is itself a JSON object or array, such as a request's
// body. The policy's pointers do not reach into it.
func (w *walk) innerJSON(text string) (edits []edit, isJSON bool) {
	t := strings.TrimLeft(text, " \t\r\n")
	if t == "" || t[0] != '{' && t[0] != '[' || w.inner == maxInner {
		return nil, false
	}
	src := []byte(text)
	in := &walk{r: w.r, dec: jsontext.NewDecoder(bytes.NewBuffer(src), lenient...), src: src, inner: w.inner + 1}
	if in.document() != nil {
		return nil, false
	}
	return in.edits, true
}

// keepsDigits says whether digits in this string are data even if they look like a card.
func (w *walk) keepsDigits(name, text string) bool {
	for _, k := range w.keep {
		if k == strings.Join(w.path, ".") {
			return true
		}
	}
	for i := range len(text) {
		if !isDigit(text[i]) {
			return false
		}
	}
	return isQuantityName(name)
}
