package web

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// shape is what a Go type asks of its JSON: worked out once a type, so that the
// ordinary request pays for one walk over its fields.
type shape struct {
	kind   shapeKind
	fields []field           // of an object, in order
	byName map[string]*field // of an object
	elem   *shape            // of a list, map or optional value
	enum   []string          // of a text
	bits   int               // of a whole number
	filled bool              // a text or list that must not be empty
}

type shapeKind uint8

const (
	rawShape shapeKind = iota
	objectShape
	listShape
	mapShape
	optionalShape
	textShape
	wholeShape
	boolShape
	timeShape
	bytesShape
)

// field is one member of an object. A required one must be there, and a required
// text or list must not be empty.
type field struct {
	name     string
	index    []int
	required bool
	shape    *shape
}

var (
	shapes   sync.Map // reflect.Type -> *shape
	rawType  = reflect.TypeFor[json.RawMessage]()
	timeType = reflect.TypeFor[time.Time]()
)

func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	s, _ := shapes.LoadOrStore(t, newShape(t))
	return s.(*shape)
}

// newShape panics for a type that no request may hold (a float, for one): that is
// met when the route is first called by any test.
func newShape(t reflect.Type) *shape {
	switch {
	case t == rawType:
		return &shape{kind: rawShape}
	case t == timeType:
		return &shape{kind: timeShape}
	}
	switch t.Kind() {
	case reflect.Struct:
		s := &shape{kind: objectShape, byName: map[string]*field{}}
		for _, f := range reflect.VisibleFields(t) {
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous || !f.IsExported() || name == "-" {
				continue
			}
			sub := newShape(f.Type)
			sub.filled = !strings.Contains(options, "omit") // omitempty, or omitzero where empty says something
			if list := f.Tag.Get("enum"); list != "" {
				sub.enum = strings.Split(list, ",")
			}
			s.fields = append(s.fields, field{name: name, index: f.Index, shape: sub, required: sub.filled})
		}
		for i := range s.fields {
			s.byName[s.fields[i].name] = &s.fields[i]
		}
		return s
	case reflect.Pointer:
		return &shape{kind: optionalShape, elem: newShape(t.Elem())}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return &shape{kind: bytesShape}
		}
		return &shape{kind: listShape, elem: newShape(t.Elem())}
	case reflect.Map:
		return &shape{kind: mapShape, elem: newShape(t.Elem())}
	case reflect.String:
		return &shape{kind: textShape}
	case reflect.Int, reflect.Int64, reflect.Int32:
		return &shape{kind: wholeShape, bits: t.Bits()}
	case reflect.Bool:
		return &shape{kind: boolShape}
	default:
		panic("web: a request cannot hold a " + t.String())
	}
}

// holds checks a decoded value for what decoding itself does not: required fields,
// listed words, and U+0000.
func (s *shape) holds(v reflect.Value) bool {
	switch s.kind {
	case objectShape:
		for i := range s.fields {
			f := &s.fields[i]
			sub := v.FieldByIndex(f.index)
			if sub.IsZero() {
				if f.required && f.shape.kind != boolShape {
					return false
				}
				continue
			}
			if !f.shape.holds(sub) {
				return false
			}
		}
	case listShape:
		if s.filled && v.Len() == 0 {
			return false
		}
		for i := range v.Len() {
			if !s.elem.holds(v.Index(i)) {
				return false
			}
		}
	case mapShape:
		for it := v.MapRange(); it.Next(); {
			if strings.IndexByte(it.Key().String(), 0) >= 0 || !s.elem.holds(it.Value()) {
				return false
			}
		}
	case optionalShape:
		return v.IsNil() || s.elem.holds(v.Elem())
	case textShape:
		text := v.String()
		return strings.IndexByte(text, 0) < 0 && (s.enum == nil || slices.Contains(s.enum, text))
	}
	return true
}

// wanted names the JSON that a shape is written as.
var wanted = map[shapeKind]struct {
	kind jsontext.Kind
	name string
}{
	objectShape: {'{', "an object"},
	mapShape:    {'{', "an object"},
	listShape:   {'[', "a list"},
	textShape:   {'"', "a string"},
	bytesShape:  {'"', "a string of base64"},
	timeShape:   {'"', "a time as RFC 3339 writes it"},
	wholeShape:  {'0', "a whole number"},
	boolShape:   {'t', "true or false"},
}

// list walks the next value of dec and adds everything in it that is wrong. Its
// error is that the body is not JSON.
func (s *shape) list(dec *jsontext.Decoder, found *faults) error {
	if s.kind == optionalShape {
		if dec.PeekKind() == 'n' {
			return dec.SkipValue()
		}
		return s.elem.list(dec, found)
	}
	want := wanted[s.kind]
	kind := dec.PeekKind()
	if kind == 'f' {
		kind = 't'
	}
	if s.kind == rawShape || kind != want.kind {
		if err := dec.SkipValue(); err != nil {
			return err
		}
		if s.kind != rawShape {
			found.add(dec.StackPointer(), "must be "+want.name)
		}
		return nil
	}
	switch s.kind {
	case objectShape, mapShape:
		return s.listMembers(dec, found)
	case listShape:
		return s.listItems(dec, found)
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	if wrong := s.scalarFault(raw); wrong != "" {
		found.add(dec.StackPointer(), wrong)
	}
	return nil
}

func (s *shape) listItems(dec *jsontext.Decoder, found *faults) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	if dec.PeekKind() == ']' && s.filled {
		found.add(dec.StackPointer(), "must not be empty")
	}
	for dec.PeekKind() != ']' {
		if err := s.elem.list(dec, found); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

func (s *shape) listMembers(dec *jsontext.Decoder, found *faults) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	at := dec.StackPointer()
	seen := map[string]bool{}
	for dec.PeekKind() != '}' {
		raw, err := dec.ReadValue()
		if err != nil {
			return err
		}
		name, bad := text(raw)
		sub := s.elem
		if s.kind == objectShape {
			f, known := s.byName[name]
			if !known {
				found.add(dec.StackPointer(), "is not a field of this request")
				if err := dec.SkipValue(); err != nil {
					return err
				}
				continue
			}
			sub = f.shape
			seen[name] = dec.PeekKind() != 'n' || sub.kind == rawShape
		} else if bad != "" {
			found.add(dec.StackPointer(), "the name "+bad)
		}
		if dec.PeekKind() == 'n' && sub.kind != rawShape {
			if err := dec.SkipValue(); err != nil {
				return err
			}
			continue
		}
		if err := sub.list(dec, found); err != nil {
			return err
		}
	}
	for i := range s.fields {
		if f := &s.fields[i]; f.required && !seen[f.name] {
			found.add(at.AppendToken(f.name), "is required")
		}
	}
	_, err := dec.ReadToken()
	return err
}

// scalarFault says what is wrong with a value of the right JSON kind, "" if nothing.
func (s *shape) scalarFault(raw jsontext.Value) string {
	switch s.kind {
	case wholeShape:
		if _, err := strconv.ParseInt(string(raw), 10, s.bits); err != nil {
			return "must be a whole number of at most " + strconv.Itoa(s.bits) + " bits, written without point or exponent"
		}
	case textShape:
		value, bad := text(raw)
		switch {
		case bad != "":
			return bad
		case value == "" && s.filled:
			return "must not be empty"
		case s.enum != nil && value != "" && !slices.Contains(s.enum, value):
			return "must be one of " + strings.Join(s.enum, ", ")
		}
	case bytesShape:
		value, bad := text(raw)
		if _, err := base64.StdEncoding.DecodeString(value); err != nil || bad != "" {
			return "must be base64, with padding"
		}
	case timeShape:
		value, bad := text(raw)
		if _, err := time.Parse(time.RFC3339, value); err != nil || bad != "" {
			return "must be a time as RFC 3339 writes it, such as 2026-06-11T03:48:20Z"
		}
	}
	return ""
}

// text unquotes a JSON string; bad says why it could not be stored as it was sent.
func text(raw jsontext.Value) (value, bad string) {
	plain, err := jsontext.AppendUnquote(nil, raw)
	switch {
	case err != nil:
		return string(plain), "holds an escape that stands for no character (half of a surrogate pair)"
	case bytes.IndexByte(plain, 0) >= 0:
		return string(plain), "holds U+0000"
	}
	return string(plain), ""
}
