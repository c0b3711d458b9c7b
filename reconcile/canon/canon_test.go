package canon_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"quittance/reconcile/canon"
)

// parse fails the test on a document that must be accepted.
func parse(t testing.TB, src string) *canon.Value {
	t.Helper()
	v, err := canon.Parse([]byte(src))
	if err != nil {
		t.Fatalf("Parse(%q): %v", src, err)
	}
	return v
}

// form is the canonical form as a string.
func form(t testing.TB, src string) string {
	t.Helper()
	return string(parse(t, src).AppendCanonical(nil))
}

func TestCanonicalForm(t *testing.T) {
	t.Parallel()
	// Written out, so that a change of the form, which would re-key every stored
	// effect, cannot pass unnoticed.
	for src, want := range map[string]string{
		`null`:                      "z",
		`true`:                      "t",
		`false`:                     "f",
		`0`:                         "n0e0;",
		`-12.50`:                    "n-125e-1;",
		`1200`:                      "n12e2;",
		`""`:                        "s0:",
		`"a:b"`:                     "s3:a:b",
		`[]`:                        "a0:",
		`[1,"1",[null]]`:            "a3:n1e0;s1:1a1:z",
		`{}`:                        "o0:",
		`{"b":1,"a":{"z":[],"":0}}`: "o2:s1:ao2:s0:n0e0;s1:za0:s1:bn1e0;",
		` { "é" : "e\u0301" } `:     "o1:s2:és2:é",
		`"\ud83d"`:                  "s3:\xed\xa0\xbd",
		`"a\u0000b"`:                "s3:a\x00b",
	} {
		if got := form(t, src); got != want {
			t.Errorf("%s: got %q, want %q", src, got, want)
		}
	}
	var missing *canon.Value
	if got := string(missing.AppendCanonical(nil)); got != "m" {
		t.Errorf("missing: got %q", got)
	}
}

func TestNumbersAreExactDecimals(t *testing.T) {
	t.Parallel()
	for want, spellings := range map[string][]string{
		"0":                                   {"0", "-0", "0.0", "-0.00", "0e9", "0E-999999999999", "-0e999999999999"},
		"1":                                   {"1", "1.0", "1e0", "10e-1", "0.1e1", "0.01E+2", "100e-2"},
		"-40":                                 {"-40", "-40.00", "-4E1", "-4e+01", "-0.4e2"},
		"0.05":                                {"0.05", "5e-2", "0.50e-1", "50E-3"},
		"31.05":                               {"31.05", "31.050", "3105e-2", "0.3105e2"},
		"9007199254740993":                    {"9007199254740993", "9007199254740993.0"},
		"100000000000000000000":               {"100000000000000000000", "1e20"},
		"1" + strings.Repeat("0", 400):        {"1e400", "10e399"},
		"0." + strings.Repeat("0", 399) + "1": {"1e-400", "0.1e-399"},
	} {
		first := form(t, spellings[0])
		for _, s := range spellings {
			if got := form(t, s); got != first {
				t.Errorf("%s: canonical form %q, want %q", s, got, first)
			}
			if got, ok := parse(t, s).Number(); !ok || got != want {
				t.Errorf("%s: Number() = %q, %v, want %q", s, got, ok, want)
			}
		}
	}
}

func TestDifferentValuesHaveDifferentForms(t *testing.T) {
	t.Parallel()
	values := []string{
		`null`, `true`, `false`, `0`, `1`, `-1`, `10`, `0.1`, `11`, `1e-400`, `1e400`,
		`9007199254740992`, `9007199254740993`, `100000000000000000000`, `100000000000000000001`,
		`""`, `"null"`, `"0"`, `"1"`, `"1.0"`, `"true"`, `"[]"`, `"{}"`, `"n1e0;"`, `" "`,
		`"ﬁle"`, `"file"`, `"１"`, `"O\u0000K"`, `"OK"`,
		`"\ud83d"`, `"\ud83e"`, `"\ude00"`, `"\ufffd"`, `"\ude00\ud83d"`, `"😀"`,
		`[]`, `[[]]`, `[[],[]]`, `[[[]]]`, `[null]`, `[1,2]`, `[2,1]`, `[12]`, `["1","2"]`, `["12"]`, `["1,2"]`,
		`{}`, `{"a":null}`, `{"a":""}`, `{"":null}`, `{"a":1}`, `{"a":"1"}`, `{"A":1}`, `[{"a":1}]`,
		`{"a":{"b":1}}`, `{"a":{},"b":1}`, `{"a":1,"b":2}`, `{"a":2,"b":1}`, `{"a1":2}`, `{"a.b":1}`,
	}
	seen := map[string]string{}
	for _, src := range values {
		f := form(t, src)
		if other, ok := seen[f]; ok {
			t.Errorf("%s and %s share the form %q", src, other, f)
		}
		for g, other := range seen {
			if strings.HasPrefix(f, g) || strings.HasPrefix(g, f) {
				t.Errorf("of %s and %s, one form starts the other: they could be glued", src, other)
			}
		}
		seen[f] = src
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":`, canon.MaxDepth+1)
	for _, c := range []struct {
		src, pointer string
		offset       int64
		problem      string
	}{
		{``, "", 0, "ends where a value"},
		{"\uFEFF{}", "", 0, "byte order mark"},
		{`{} x`, "", 3, "data follows"},
		{`{}{}`, "", 2, "data follows"},
		{`nul`, "", 0, "value is expected"},
		{`{"a":NaN}`, "/a", 5, "NaN"},
		{`{"a":-Infinity}`, "/a", 5, "NaN"},
		{`{"a":Infinity}`, "/a", 5, "NaN"},
		{`{"a":1e200000}`, "/a", 5, "exponent is beyond 400"},
		{`{"a":[1,1e401]}`, "/a/1", 8, "exponent is beyond 400"},
		{`1e-401`, "", 0, "exponent is beyond 400"},
		{`1e99999999999999999999999`, "", 0, "exponent is beyond 400"},
		{`1` + strings.Repeat("1", canon.MaxDigits), "", 0, "more than 1000 digits"},
		{`0.` + strings.Repeat("1", canon.MaxDigits), "", 0, "more than 1000 digits"},
		{`01`, "", 0, "needless zero"},
		{`-`, "", 1, "digit is expected"},
		{`+1`, "", 0, "value is expected"},
		{`.5`, "", 0, "value is expected"},
		{`5.`, "", 2, "after the decimal point"},
		{`5e`, "", 2, "in the exponent"},
		{`0x10`, "", 1, "data follows"},
		{`{"a":1,"a":2}`, "/a", 7, "second member"},
		{`{"a":{"b":1,"\u0062":2}}`, "/a/b", 12, "second member"},
		{`{"é":1,"e\u0301":2}`, "/é", 8, "second member"},
		{`{"a":1,}`, "", 7, "member name"},
		{`[1,]`, "/1", 3, "value is expected"},
		{`[1 2]`, "", 3, "comma"},
		{`{"a" 1}`, "", 5, "colon"},
		{`{a:1}`, "", 1, "member name"},
		{`{"a":1`, "", 6, "comma"},
		{`["a`, "/0", 3, "ends inside"},
		{`["a\`, "/0", 3, "ends inside"},
		{"\"a\nb\"", "", 2, "control character"},
		{"\"a\\n\nb\"", "", 4, "control character"},
		{`"\x"`, "", 1, "unknown escape"},
		{`"\u12g4"`, "", 1, "four hexadecimal"},
		{`"\u+123"`, "", 1, "four hexadecimal"},
		{`"\u12`, "", 1, "four hexadecimal"},
		{"{\"a\":[\"ok\",\"x\xff\"]}", "/a/1", 13, "invalid UTF-8"},
		{"{\"a\":\"\\n\xc3\"}", "/a", 8, "invalid UTF-8"},
		{"\"\xed\xa0\xbd\"", "", 1, "invalid UTF-8"},
		{"{\"\xff\":1}", "", 2, "invalid UTF-8"},
		{deep, strings.Repeat("/a", canon.MaxDepth), int64(len(deep) - 5), "deeper than 128"},
		{`{"a/b":{"m~n":x}}`, "/a~1b/m~0n", 14, "value is expected"},
	} {
		_, err := canon.Parse([]byte(c.src))
		var e *canon.Error
		if !errors.As(err, &e) {
			t.Errorf("%.60q: got %v, want an *Error", c.src, err)
			continue
		}
		if e.Pointer != c.pointer || e.Offset != c.offset || !strings.Contains(e.Problem, c.problem) {
			t.Errorf("%.60q: got %q, %d, %q\nwant %q, %d, %q", c.src, e.Pointer, e.Offset, e.Problem, c.pointer, c.offset, c.problem)
		}
	}
}

func TestLimitsAreInclusive(t *testing.T) {
	t.Parallel()
	parse(t, strings.Repeat("[", canon.MaxDepth)+strings.Repeat("]", canon.MaxDepth))
	parse(t, strings.Repeat("9", canon.MaxDigits))
	parse(t, "["+strings.Repeat("0,", canon.MaxValues-2)+"0]")
	_, err := canon.Parse([]byte("[" + strings.Repeat("0,", canon.MaxValues-1) + "0]"))
	if err == nil || !strings.Contains(err.Error(), "more than 500000 values") {
		t.Errorf("one value too many: %v", err)
	}
}

func TestErrorIsShortAndHoldsNoValue(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 1<<20)
	_, err := canon.Parse([]byte(`{"` + long + `":{"card":"4111111111111111","x":tok_secret}}`))
	if err == nil || len(err.Error()) > 700 {
		t.Fatalf("a long member name makes a long error: %d bytes", len(err.Error()))
	}
	for _, src := range []string{`{"x":tok_secret}`, `["tok_secret"`, `"tok_secret\x"`, `{"a":"tok_secret"} tok_secret`} {
		if _, err := canon.Parse([]byte(src)); err == nil || strings.Contains(err.Error(), "tok_secret") {
			t.Errorf("%s: the error repeats the value: %v", src, err)
		}
	}
	if _, err := canon.ParseObject([]byte(`"tok_secret"`)); err == nil || strings.Contains(err.Error(), "tok_secret") {
		t.Errorf("ParseObject: %v", err)
	}
}

func TestManyMembersAreStillCompared(t *testing.T) {
	t.Parallel()
	for n := 1; n < 60; n++ {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"k%d":%d,`, i, i)
		}
		for _, again := range []int{0, n / 2, n - 1} {
			if _, err := canon.Parse([]byte(fmt.Sprintf(`{%s"k%d":0}`, b.String(), again))); err == nil {
				t.Fatalf("%d members: k%d repeated is accepted", n, again)
			}
		}
		if got := parse(t, "{"+b.String()+`"last":0}`).Len(); got != n+1 {
			t.Fatalf("%d members were read as %d", n+1, got)
		}
	}
}

func TestWalking(t *testing.T) {
	t.Parallel()
	v := parse(t, `{"z":[10,"x\u0041"],"a":{"e\u0301":true},"n":null}`)
	var order []string
	for name := range v.Members() {
		order = append(order, name)
	}
	if got := strings.Join(order, ","); got != "z,a,n" {
		t.Errorf("members: %s, want the order sent", got)
	}
	var items []canon.Kind
	for _, item := range v.Lookup("z").Items() {
		items = append(items, item.Kind())
	}
	if len(items) != 2 || items[0] != canon.Number || items[1] != canon.String {
		t.Errorf("items: %v", items)
	}
	if yes, ok := v.Lookup("a.é").Bool(); !yes || !ok {
		t.Error("a member name is not found by its composed spelling")
	}
	if v.Lookup("n").Kind() != canon.Null {
		t.Error("null is not found")
	}
	for _, path := range []string{"x", "n.x", "z.0", "a.x.y", "a..é"} {
		if got := v.Lookup(path); got != nil {
			t.Errorf("Lookup(%q) found %v", path, got.Kind())
		}
	}
	if v.Lookup("") != v {
		t.Error("the empty path is not the value itself")
	}
	for verb, want := range map[string]string{"%v": "an object", "%+v": "an object", "%#v": "an object", "%s": "an object", "%q": "an object"} {
		if got := fmt.Sprintf(verb, v); got != want {
			t.Errorf("%s prints %q", verb, got)
		}
	}
}

func TestWithoutLeavesTheOriginalAlone(t *testing.T) {
	t.Parallel()
	const src = `{"a":{"b":1,"c":{"d":2}},"b":3}`
	v := parse(t, src)
	for _, c := range []struct {
		paths []string
		want  string
	}{
		{nil, src},
		{[]string{"x", "a.x", "b.x", "a.c.d.e"}, src},
		{[]string{"b"}, `{"a":{"b":1,"c":{"d":2}}}`},
		{[]string{"a.b"}, `{"a":{"c":{"d":2}},"b":3}`},
		{[]string{"a.c.d"}, `{"a":{"b":1,"c":{}},"b":3}`},
		{[]string{"a.b", "a.c", "b"}, `{"a":{}}`},
		{[]string{"a", "a.b"}, `{"b":3}`},
	} {
		if got := string(v.Without(c.paths).AppendCanonical(nil)); got != form(t, c.want) {
			t.Errorf("without %v: %s, want the form of %s", c.paths, got, c.want)
		}
	}
	if !bytes.Equal(v.AppendCanonical(nil), []byte(form(t, src))) {
		t.Error("Without changed its receiver")
	}
}
