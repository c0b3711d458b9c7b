package expr_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"

	"quittance/reconcile/canon"
	"quittance/reconcile/policy/expr"
	"quittance/reconcile/policy/read"
)

func compile(t *testing.T, source string, want *cel.Type) (*expr.Expr, string) {
	t.Helper()
	scope, err := expr.NewScope(10_000, cel.Variable("x", cel.DynType), expr.Number())
	if err != nil {
		t.Fatal(err)
	}
	root, m := read.Document("f", []byte("a: |\n  "+source))
	if m != nil {
		t.Fatal(m)
	}
	r := read.New("f", read.Surroundings{})
	e := scope.Compile(r, r.Fields(root, "", "a")["a"], "a", want)
	return e, r.Found().String()
}

func eval(t *testing.T, source, x string) (string, error) {
	t.Helper()
	e, mistakes := compile(t, source, expr.Any)
	if e == nil {
		t.Fatalf("%s: %s", source, mistakes)
	}
	v, err := canon.Parse([]byte(x))
	if err != nil {
		t.Fatal(err)
	}
	out, err2 := e.Eval(t.Context(), map[string]any{"x": expr.Value(v)})
	if err2 != nil {
		return "", err2
	}
	raw, err2 := expr.AppendJSON(nil, out)
	return string(raw), err2
}

func TestNumbersAreExact(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ source, x, want string }{
		{"x == 9007199254740993", "9007199254740993", "true"},
		{"x == 9007199254740993", "9007199254740992", "false"},
		{"x", "9007199254740993", "9007199254740993"},
		{"x", "18446744073709551615", "18446744073709551615"},
		{`x == "18446744073709551616"`, "18446744073709551616", "true"},
		{"x", "1.50", `"1.5"`}, // text, unless it is made a number again
		{"number(x)", "1.50", "1.5"},
		{"number(x)", "12345678901234567890123.45", "12345678901234567890123.45"},
		{`{"a": number(x), "b": [number("1e3")]}`, "7", `{"a":7,"b":[1000]}`},
		{"x", `{"b":[null,true,"\u00e9"],"a":{}}`, `{"a":{},"b":[null,true,"é"]}`},
		{`x == "\u00e9"`, `"e\u0301"`, "true"}, // composed and decomposed are one name
		{`x == "a"`, `"A"`, "false"},
	} {
		if got, err := eval(t, c.source, c.x); err != nil || got != c.want {
			t.Errorf("%s with %s: %s, %v, want %s", c.source, c.x, got, err, c.want)
		}
	}
}

// Two lone surrogates are not one text.
func TestOddTextStaysApart(t *testing.T) {
	t.Parallel()
	if got, err := eval(t, "x[0] == x[1]", `["\ud800","\ud801"]`); err != nil || got != "false" {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := eval(t, "x", `"\ud800"`); err == nil {
		t.Errorf("half a character became %s", got)
	}
}

func TestAFailureGivesNoValueAndTellsNone(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"x.secret.more", "x[0] + 1", `number(x.secret)`, "int(x.secret)", "timestamp(x.secret)", `x.secret > 5`,
		"[1,2,3,4,5,6,7,8,9].map(a, [1,2,3,4,5,6,7,8,9].map(b, [1,2,3,4,5,6,7,8,9].map(c, [1,2,3,4,5,6,7,8,9].map(d, x.secret + x.secret))))"} {
		_, err := eval(t, source, `{"secret":"zz91"}`)
		if !errors.Is(err, expr.ErrFailed) || strings.Contains(err.Error(), "zz91") {
			t.Errorf("%s: %v", source, err)
		}
	}
}

func TestFloatsAreRefused(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"x == 1.5", "double(x) > double(1)", "[1.0].exists(f, f == x)", "x > 1e3"} {
		if e, mistakes := compile(t, source, expr.Any); e != nil || !strings.Contains(mistakes, "must not use floats") {
			t.Errorf("%s: %s", source, mistakes)
		}
	}
	if _, mistakes := compile(t, "x == 'a'", expr.Text); !strings.Contains(mistakes, "must give text, not bool") {
		t.Errorf("the wrong kind: %s", mistakes)
	}
}
