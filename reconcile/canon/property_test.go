package canon_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"quittance/reconcile/canon"
)

// respell writes v as other JSON of the same meaning: members shuffled, numbers and
// strings spelt another way, spaces where they are allowed.
func respell(b *strings.Builder, v *canon.Value, r *rand.Rand) {
	space := func() { b.WriteString([]string{"", "", " ", "\n\t"}[r.IntN(4)]) }
	space()
	switch v.Kind() {
	case canon.Null:
		b.WriteString("null")
	case canon.Bool:
		yes, _ := v.Bool()
		fmt.Fprint(b, yes)
	case canon.Number:
		n, _ := v.Number()
		b.WriteString(respellNumber(n, r))
	case canon.String:
		s, _ := v.Text()
		respellText(b, s, r)
	case canon.Array:
		b.WriteByte('[')
		for i, item := range v.Items() {
			if i > 0 {
				b.WriteByte(',')
			}
			respell(b, item, r)
		}
		b.WriteByte(']')
	case canon.Object:
		type member struct {
			name  string
			value *canon.Value
		}
		var members []member
		for name, value := range v.Members() {
			members = append(members, member{name, value})
		}
		r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		b.WriteByte('{')
		for i, m := range members {
			if i > 0 {
				b.WriteByte(',')
			}
			respellText(b, m.name, r)
			b.WriteByte(':')
			respell(b, m.value, r)
		}
		b.WriteByte('}')
	}
	space()
}

// respellNumber moves the point of a plain decimal by up to nine places and undoes it
// by an exponent. Long ones stay as they are, lest they pass a limit.
func respellNumber(plain string, r *rand.Rand) string {
	if len(plain) > 300 {
		return plain
	}
	if !strings.Contains(plain, ".") {
		plain += "."
	}
	plain += strings.Repeat("0", 10)
	whole, frac, _ := strings.Cut(plain, ".")
	n := r.IntN(10)
	whole += frac[:n]
	sign, digits := "", whole
	if strings.HasPrefix(whole, "-") {
		sign, digits = "-", whole[1:]
	}
	if digits = strings.TrimLeft(digits, "0"); digits == "" {
		digits = "0"
	}
	return fmt.Sprintf("%s%s.%s%s%d", sign, digits, frac[n:], []string{"e-", "E-0"}[r.IntN(2)], n)
}

func respellText(b *strings.Builder, s string, r *rand.Rand) {
	b.WriteByte('"')
	for i := 0; i < len(s); {
		c, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case c == utf8.RuneError && size == 1: // a lone surrogate
			fmt.Fprintf(b, `\u%04x`, rune(s[i]&0x0F)<<12|rune(s[i+1]&0x3F)<<6|rune(s[i+2]&0x3F))
			size = 3
		case c < ' ' || c == '"' || c == '\\' || c < 0x10000 && r.IntN(4) == 0:
			fmt.Fprintf(b, `\u%04X`, c)
		default:
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	b.WriteByte('"')
}

// random builds a value as text, members and letters in both normal forms included.
func random(r *rand.Rand, depth int) string {
	letters := []string{"a", "b", "é", "e\\u0301", "ü", "😀", "\\ud83d", "\\u0000", "\\n", "\\\"", "ﬁ", "0", ":", "한"}
	text := func() string {
		var b strings.Builder
		for range r.IntN(6) {
			b.WriteString(letters[r.IntN(len(letters))])
		}
		// Escaped halves must not meet by chance and become another character.
		return `"` + strings.ReplaceAll(b.String(), `\ud83d\ud83d`, `\ud83d`) + `"`
	}
	switch n := r.IntN(8); {
	case n < 2 || depth == 0 && n > 4:
		return text()
	case n == 2:
		return fmt.Sprintf("%d", r.Int64()-r.Int64())
	case n == 3:
		return fmt.Sprintf("%d.%03d", r.IntN(1000), r.IntN(1000))
	case n == 4:
		return []string{"null", "true", "false", "-0", "1e30"}[r.IntN(5)]
	case n == 5:
		var items []string
		for range r.IntN(4) {
			items = append(items, random(r, depth-1))
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	var members []string
	for i := range r.IntN(25) {
		members = append(members, fmt.Sprintf(`"%d-%s:%s`, i, text()[1:], random(r, depth-1)))
	}
	return "{" + strings.Join(members, ",") + "}"
}

func TestRespellingsShareTheForm(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		src := random(r, 3)
		want := form(t, src)
		for range 3 {
			var b strings.Builder
			respell(&b, parse(t, src), r)
			if got := form(t, b.String()); got != want {
				t.Fatalf("%s\nrespelt as %s\nhas the form %q\nwant %q", src, b.String(), got, want)
			}
			src = b.String()
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,1.0,-0,1e-400,{"é":"e\u0301"}],"b":null}`, `"\ud83d\ud83d\ude00\udfff"`, `[[[]]]`, `{"a":1,"\u0061":2}`,
		`1e200000`, `"x\`, "\"\xff\"", `{"\u0000":"\u0000"}`, `[1,2`, "\"" + strings.Repeat("\u0301", 40) + "\"",
	} {
		f.Add([]byte(seed), uint64(1))
	}
	f.Fuzz(func(t *testing.T, raw []byte, seed uint64) {
		v, err := canon.Parse(raw)
		if err != nil {
			if len(err.Error()) > 800 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		if !json.Valid(raw) {
			t.Fatalf("accepted what is not JSON: %q", raw)
		}
		want := v.AppendCanonical(nil)
		if !bytes.Equal(want, v.AppendCanonical(nil)) {
			t.Fatal("the form is not stable")
		}
		var b strings.Builder
		respell(&b, v, rand.New(rand.NewPCG(seed, 0)))
		again, err := canon.Parse([]byte(b.String()))
		if err != nil {
			t.Fatalf("%q respelt as %q is refused: %v", raw, b.String(), err)
		}
		if got := again.AppendCanonical(nil); !bytes.Equal(got, want) {
			t.Fatalf("%q respelt as %q: form %q, want %q", raw, b.String(), got, want)
		}
		// A decomposed copy of the whole text means the same.
		if d, err := canon.Parse(norm.NFD.Bytes(raw)); err == nil && !bytes.Equal(d.AppendCanonical(nil), want) {
			t.Fatalf("%q decomposed has another form", raw)
		}
	})
}

var benchArgs = []byte(`{"vendor":"ACME Tools","invoice":"INV-9","amount":"4200.00","currency":"USD","approved":true,` +
	`"lines":[{"sku":"A-1","qty":3,"price":1200.50},{"sku":"B-2","qty":1,"price":598.50}],"request_time":"2026-01-02T10:00:00Z"}`)

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	b.SetBytes(int64(len(benchArgs)))
	for b.Loop() {
		if _, err := canon.ParseObject(benchArgs); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBeginKeys is what one begin costs here: parse, leave out, two keys.
func BenchmarkBeginKeys(b *testing.B) {
	volatile := []string{"request_time"}
	b.ReportAllocs()
	for b.Loop() {
		v, err := canon.ParseObject(benchArgs)
		if err != nil {
			b.Fatal(err)
		}
		v = v.Without(volatile)
		_ = canon.EffectKey("run-ap-771", "send_payment", v, 1)
		_ = canon.CallDigest("send_payment", v)
	}
}
