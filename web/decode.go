package web

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"
)

// DepthLimit is how deep a body may nest. It protects the parser; what a call's
// arguments may hold is decided where their key is computed.
const DepthLimit = 256

// Decode reads the body as one JSON object into a T and refuses everything that
// could mean two things: other content types (415), more than [BodyLimit] (413), what
// is not JSON, duplicate names and bytes that are not UTF-8 (400, with the place), and
// unknown, missing or wrong fields (422, all of them listed). Names are case-sensitive.
//
// A json.RawMessage field receives its bytes exactly as they were sent, also escapes
// that stand for no character. A string field refuses those, and U+0000, because they
// could not be stored as sent.
//
// A field without omitempty or omitzero in its json tag is required. No error repeats a
// value.
func Decode[T any](c echo.Context) (T, error) { return DecodeUpTo[T](c, BodyLimit) }

// DecodeUpTo is [Decode] of a body of at most most bytes.
func DecodeUpTo[T any](c echo.Context, most int64) (T, error) {
	var v T
	if err := wantJSON(c.Request()); err != nil {
		return v, err
	}
	body, err := readBody(c, most)
	if err != nil {
		return v, err
	}
	err = unmarshal(body, &v)
	return v, err
}

func unmarshal(body []byte, v any) error {
	if err := precheck(body); err != nil {
		return err
	}
	shape := shapeOf(reflect.TypeOf(v).Elem())
	if json.Unmarshal(body, v, json.RejectUnknownMembers(true)) == nil && shape.holds(reflect.ValueOf(v).Elem()) {
		return nil
	}
	// Something is wrong, or an escape in a raw field stands for no character. Read
	// the body again slowly, to list everything that is wrong at once.
	var found faults
	dec := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowInvalidUTF8(true))
	if err := shape.list(dec, &found); err != nil {
		return malformed(body, err)
	}
	if _, err := dec.ReadToken(); err == nil || !errors.Is(err, io.EOF) {
		return problemAt(dec.InputOffset(), "", "there is something after the end of the object")
	}
	if len(found) > 0 {
		return Invalid(found...)
	}
	reflect.ValueOf(v).Elem().SetZero()
	if err := json.Unmarshal(body, v, json.RejectUnknownMembers(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return malformed(body, err)
	}
	return nil
}

// precheck finds what the parser would find late or not at all.
func precheck(body []byte) error {
	if len(body) == 0 {
		return problemAt(0, "", "the body is empty; a JSON object is expected")
	}
	if !utf8.Valid(body) {
		at := 0
		for at < len(body) {
			r, n := utf8.DecodeRune(body[at:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			at += n
		}
		return problemAt(int64(at), "", "the byte is not UTF-8")
	}
	depth, inString := 0, false
	for i := 0; i < len(body); i++ {
		switch b := body[i]; {
		case inString && b == '\\':
			i++
		case b == '"':
			inString = !inString
		case inString:
		case b == '{' || b == '[':
			if depth++; depth > DepthLimit {
				p := problemAt(int64(i), "", "it nests deeper than 256 levels")
				p.Limit = DepthLimit
				return p
			}
		case b == '}' || b == ']':
			depth--
		}
	}
	return nil
}

// malformed says where a body stops being JSON that is allowed here.
func malformed(body []byte, err error) error {
	if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		detail := "it is not JSON from here on"
		switch {
		case errors.Is(err, jsontext.ErrDuplicateName):
			detail = "the name appears twice in its object"
		case s.ByteOffset >= int64(len(body)):
			detail = "the JSON ends too early"
		}
		return problemAt(s.ByteOffset, s.JSONPointer, detail)
	}
	if s, ok := errors.AsType[*json.SemanticError](err); ok {
		return Invalid(FieldError{shorten(s.JSONPointer), "does not fit here"})
	}
	return problemAt(int64(len(body)), "", "the JSON ends too early")
}

func problemAt(offset int64, pointer jsontext.Pointer, detail string) *Problem {
	return &Problem{
		Status:  http.StatusBadRequest,
		Code:    "malformed",
		Detail:  "The body cannot be read: " + detail + ".",
		Offset:  &offset,
		Pointer: shorten(pointer),
	}
}

// shorten keeps a pointer readable when a name in it is very long.
func shorten(p jsontext.Pointer) string {
	const most = 300
	s := string(p)
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}

// faults is everything that is wrong with a body's fields.
type faults []FieldError

// mostFaults is how many are listed: a body of 16 MiB may hold a million.
const mostFaults = 100

func (f *faults) add(p jsontext.Pointer, detail string) {
	if len(*f) < mostFaults {
		*f = append(*f, FieldError{Pointer: shorten(p), Detail: detail})
	}
}

// Invalid is the refusal of a body whose fields are wrong.
func Invalid(errs ...FieldError) *Problem {
	return &Problem{
		Status: http.StatusUnprocessableEntity,
		Code:   "invalid",
		Detail: "The body has fields that cannot be accepted.",
		Errors: errs,
	}
}
