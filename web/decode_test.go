package web

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

type order struct {
	ID     string            `json:"id"`
	Kind   string            `json:"kind,omitempty" enum:"new,old"`
	Count  int               `json:"count"`
	Raw    json.RawMessage   `json:"raw,omitempty"`
	Due    *time.Time        `json:"due,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Lines  []line            `json:"lines,omitempty"`
	Urgent bool              `json:"urgent,omitempty"`
}

type line struct {
	SKU string `json:"sku"`
	N   int    `json:"n,omitempty"`
}

func TestUnmarshalKeepsRawBytes(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{"a" : 1.0, "b":"O\u0000K"}`,
		`"cut \ud83d"`,
		`"whole \ud83d\ude00 😀"`,
		`9007199254740993`,
		`1e200000`,
		`{"o":"\/\u0041<>&"}`,
		`null`,
	} {
		var v order
		if err := unmarshal([]byte(`{"id":"x","count":1,"raw":`+raw+`}`), &v); err != nil {
			t.Errorf("%s: %v", raw, err)
		} else if string(v.Raw) != raw {
			t.Errorf("sent %s, got %s", raw, v.Raw)
		}
	}
}

func TestUnmarshalRefusesWhatIsNotJSON(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, body, pointer string }{
		{"empty", ``, ""},
		{"cut", `{"id":"x","count":1`, ""},
		{"cut in a string", `{"id":"secret-va`, "/id"},
		{"not a number", `{"id":"x","count":NaN}`, "/count"},
		{"infinity", `{"id":"x","count":1,"raw":{"deep":[0,-Infinity]}}`, "/raw/deep/1"},
		{"twice", `{"id":"x","id":"y","count":1}`, "/id"},
		{"twice inside raw", `{"id":"x","count":1,"raw":{"a":{"b":1,"b":2}}}`, "/raw/a/b"},
		{"something after", `{"id":"x","count":1} {}`, ""},
		{"comment", `{"id":"x",/* c */"count":1}`, ""},
		{"not UTF-8", "{\"id\":\"caf\xc3\",\"count\":1}", ""},
		{"not UTF-8 inside raw", "{\"id\":\"x\",\"count\":1,\"raw\":\"\xff\"}", ""},
		{"deep", `{"id":"x","count":1,"raw":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}`, ""},
		{"raw control character", "{\"id\":\"a\nb\",\"count\":1}", "/id"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var v order
			err := unmarshal([]byte(tc.body), &v)
			p, ok := errors.AsType[*Problem](err)
			if !ok || p.Status != 400 || p.Code != "malformed" || p.Offset == nil {
				t.Fatalf("got %v, want a 400 with an offset", err)
			}
			if *p.Offset < 0 || *p.Offset > int64(len(tc.body)) {
				t.Errorf("offset %d is outside of the body", *p.Offset)
			}
			if p.Pointer != tc.pointer {
				t.Errorf("pointer %q, want %q", p.Pointer, tc.pointer)
			}
			if strings.Contains(p.Detail, "secret-va") {
				t.Error("the detail repeats what was sent")
			}
		})
	}
}

func TestUnmarshalListsEverythingThatIsWrong(t *testing.T) {
	t.Parallel()
	body := `{"ID":"x","count":"sk-1","kind":"sk-2","due":"yesterday sk-3","urgent":"yes",
		"labels":{"a":1,"b\u0000":"x"},"lines":[{"sku":""},{"n":1.0},7],"more":{"id":1}}`
	var v order
	p, ok := errors.AsType[*Problem](unmarshal([]byte(body), &v))
	if !ok || p.Status != 422 {
		t.Fatalf("got %v, want a 422", p)
	}
	want := map[string]string{
		"/ID":           "is not a field",
		"/more":         "is not a field",
		"/id":           "is required",
		"/count":        "must be a whole number",
		"/kind":         "must be one of new, old",
		"/due":          "must be a time",
		"/urgent":       "must be true or false",
		"/labels/a":     "must be a string",
		"/labels/b\x00": "the name holds U+0000",
		"/lines/0/sku":  "must not be empty",
		"/lines/1/sku":  "is required",
		"/lines/1/n":    "must be a whole number",
		"/lines/2":      "must be an object",
	}
	for _, e := range p.Errors {
		if !strings.HasPrefix(e.Detail, want[e.Pointer]) || want[e.Pointer] == "" {
			t.Errorf("unexpected: %q %s", e.Pointer, e.Detail)
		}
		delete(want, e.Pointer)
		if strings.Contains(e.Detail, "sk-") {
			t.Errorf("%s repeats the value", e.Pointer)
		}
	}
	for pointer := range want {
		t.Errorf("%s is not listed", pointer)
	}
}

func TestUnmarshalRefusesTextThatCannotBeStored(t *testing.T) {
	t.Parallel()
	for _, id := range []string{`a\u0000b`, `a\ud83d`, `\udc00`} {
		var v order
		p, ok := errors.AsType[*Problem](unmarshal([]byte(`{"id":"`+id+`","count":1}`), &v))
		if !ok || p.Status != 422 || len(p.Errors) != 1 || p.Errors[0].Pointer != "/id" {
			t.Errorf("%s: got %v", id, p)
		}
	}
}

func TestUnmarshalAcceptsOddButHonestBodies(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"id":"x","count":0}`, // required and zero
		`{"id":"x","count":1,"kind":"","due":null,"labels":null,"lines":[]}`,
		" \n{\"count\":1,\"id\":\"\\ud83d\\ude00\"}\r\n",
		`{"id":"x","count":1,"due":"2026-06-11T03:48:20.123456+02:00"}`,
	} {
		var v order
		if err := unmarshal([]byte(body), &v); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
	for _, body := range []string{`[]`, `"x"`, `null`, `7`} {
		var v order
		if p, ok := errors.AsType[*Problem](unmarshal([]byte(body), &v)); !ok || p.Status != 422 || p.Errors[0].Pointer != "" {
			t.Errorf("%s: got %v, want a 422 for the whole body", body, p)
		}
	}
}

func TestUnmarshalRefusesAnEmptyRequiredList(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"orders":[]}`, `{"orders":null}`, `{}`} {
		var v struct {
			Orders []order `json:"orders"`
		}
		p, ok := errors.AsType[*Problem](unmarshal([]byte(body), &v))
		if !ok || p.Status != 422 || len(p.Errors) != 1 || p.Errors[0].Pointer != "/orders" {
			t.Errorf("%s: got %v", body, p)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(`{"id":"x","count":1,"raw":{"a":[1,"\ud83d"]},"lines":[{"sku":"s"}]}`))
	f.Add([]byte(`{"id":"x","count":1e2,"labels":{"a":"b","a":"c"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var v order
		err := unmarshal(body, &v)
		p, isProblem := errors.AsType[*Problem](err)
		if err != nil && (!isProblem || p.Status != 400 && p.Status != 422) {
			t.Fatalf("an error that is no refusal: %v", err)
		}
		if err == nil && v.ID == "" {
			t.Fatal("a required field is empty")
		}
		if err == nil && v.Raw != nil && !json.Valid(v.Raw) {
			t.Fatalf("raw is not JSON: %q", v.Raw)
		}
	})
}

func BenchmarkUnmarshal(b *testing.B) {
	body := []byte(`{"id":"run-1","count":1,"raw":{"vendor":"ACME","invoice":"INV-9","amount":"4200.00"},"labels":{"a":"b"},"lines":[{"sku":"s","n":1}]}`)
	b.ReportAllocs()
	for b.Loop() {
		var v order
		if err := unmarshal(body, &v); err != nil {
			b.Fatal(err)
		}
	}
}
