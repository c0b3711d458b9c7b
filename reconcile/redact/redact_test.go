package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"quittance/reconcile/canon"
	"quittance/reconcile/redact"
)

var r = redact.New([]byte("a key of the database"))

var marker = regexp.MustCompile(`redacted:[0-9a-f]{32}`)

// masked is the redacted document with each replacement written as ■.
func masked(t testing.TB, src string, pointers, keep []string) string {
	t.Helper()
	out, changed, err := r.JSON([]byte(src), pointers, keep)
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	if !json.Valid(out) {
		t.Fatalf("%s became %s, which is not JSON", src, out)
	}
	if changed != (string(out) != src) {
		t.Errorf("%s: changed is %v", src, changed)
	}
	again, more, err := r.JSON(out, pointers, keep)
	if err != nil || more || string(again) != string(out) {
		t.Errorf("%s is not redacted once and for all:\n%s\n%s %v", src, out, again, err)
	}
	return marker.ReplaceAllString(string(out), "■")
}

func TestBC148_SecretsAreGoneAndNothingElse(t *testing.T) {
	t.Parallel()
	const src = `{"headers":{"Authorization":"Bearer zz-91"},"tvly_api_key":"tvly-77","dsn":"postgres://u:pw9@db/x","body":"{\"password\":\"pw9\"}","vendor":"Keystone Ltd"}`
	const want = `{"headers":{"Authorization":"■"},"tvly_api_key":"■","dsn":"postgres://u:■@db/x","body":"{\"password\":\"■\"}","vendor":"Keystone Ltd"}`
	if got := masked(t, src, nil, nil); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for what, text := range map[string]string{
		"error": `401 from postgres://u:pw9@db/x with Authorization: Bearer zz-91, body {"password":"pw9"}, tvly_api_key=tvly-77`,
		"JSON":  src,
	} {
		out := r.Text(text)
		for _, secret := range []string{"zz-91", "tvly-77", "pw9"} {
			if strings.Contains(out, secret) {
				t.Errorf("%s still holds %s: %s", what, secret, out)
			}
		}
	}
	key := func(src string) canon.Key {
		out, _, err := r.JSON([]byte(src), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		args, err := canon.ParseObject(out)
		if err != nil {
			t.Fatal(err)
		}
		return canon.EffectKey("run", "tool", args, 1)
	}
	if key(src) == key(strings.Replace(src, "zz-91", "zz-92", 1)) {
		t.Error("two calls that differ in a secret have one key")
	}
	if first, again := key(src), key(src); first != again {
		t.Error("one call has two keys")
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"authorization", "Authorization", "proxy-authorization", "cookie", "Set-Cookie", "password", "PASSWORD", "db_password", "userPassword",
		"passwd", "secret", "client_secret", "clientSecret", "webhook_secret", "token", "Token", "access_token", "accessToken", "refresh-token", "id_token", "idToken",
		"X-Auth-Token", "session_token", "bearer_token", "api_key", "apiKey", "apikey", "APIKEY", "x-api-key", "X_API_KEY", "stripe_api_key", "private_key", "privateKey",
		"aws_secret_access_key", `pass\u0077ord`} {
		if got := masked(t, `{"`+name+`":"v"}`, nil, nil); got != `{"`+name+`":"■"}` {
			t.Errorf("%s is kept: %s", name, got)
		}
	}
	for _, name := range []string{"token_count", "payment_token_type", "page_token", "next_token", "valid_token", "paid_token", "tokens", "max_tokens", "cookie_banner",
		"password_reset_url", "secretary", "authorization_id", "card_authorization", "key", "idempotency_key", "business_key", "public_key", "passport", "author", "a"} {
		if got := masked(t, `{"`+name+`":"v"}`, nil, nil); got != `{"`+name+`":"v"}` {
			t.Errorf("%s is taken: %s", name, got)
		}
	}
}

func TestWholeValuesAreTaken(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		`{"password":1234}`:                          `{"password":"■"}`,
		`{"secret" : {"a":[1,{"b":"c"}]} , "x":1 }`:  `{"secret" : "■" , "x":1 }`,
		`{"cookie":["a=1","b=2"]}`:                   `{"cookie":"■"}`,
		`[{"a":{"token":"t"}},{"token":"t"}]`:        `[{"a":{"token":"■"}},{"token":"■"}]`,
		`{"password":null,"secret":true,"token":""}`: `{"password":null,"secret":true,"token":""}`,
		`{"token":"a","token":"b"}`:                  `{"token":"■","token":"■"}`,
		`"plain"`:                                    `"plain"`,
		` 5 `:                                        ` 5 `,
	} {
		if got := masked(t, src, nil, nil); got != want {
			t.Errorf("%s became %s, want %s", src, got, want)
		}
	}
}

func TestPointers(t *testing.T) {
	t.Parallel()
	const src = `{"iban":"DE1","a/b":{"m~n":1},"items":[{"pin":"1","sku":"x"},{"pin":"2","sku":"y"}],"flag":true,"none":null,"":"e"}`
	for pointer, want := range map[string]string{
		"/iban":        `{"iban":"■","a/b":{"m~n":1},"items":[{"pin":"1","sku":"x"},{"pin":"2","sku":"y"}],"flag":true,"none":null,"":"e"}`,
		"/a~1b/m~0n":   `{"iban":"DE1","a/b":{"m~n":"■"},"items":[{"pin":"1","sku":"x"},{"pin":"2","sku":"y"}],"flag":true,"none":null,"":"e"}`,
		"/items/*/pin": `{"iban":"DE1","a/b":{"m~n":1},"items":[{"pin":"■","sku":"x"},{"pin":"■","sku":"y"}],"flag":true,"none":null,"":"e"}`,
		"/items/1":     `{"iban":"DE1","a/b":{"m~n":1},"items":[{"pin":"1","sku":"x"},"■"],"flag":true,"none":null,"":"e"}`,
		"/flag":        `{"iban":"DE1","a/b":{"m~n":1},"items":[{"pin":"1","sku":"x"},{"pin":"2","sku":"y"}],"flag":"■","none":null,"":"e"}`,
		"/":            `{"iban":"DE1","a/b":{"m~n":1},"items":[{"pin":"1","sku":"x"},{"pin":"2","sku":"y"}],"flag":true,"none":null,"":"■"}`,
		"/none":        src, "/pin": src, "/items/pin": src, "/iban/x": src, "/items/2": src,
	} {
		if got := masked(t, src, []string{"/other", pointer}, nil); got != want {
			t.Errorf("%s: %s\nwant %s", pointer, got, want)
		}
	}
}

func TestFormsInText(t *testing.T) {
	t.Parallel()
	basic := base64.StdEncoding.EncodeToString([]byte("user:pw"))
	pem := "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----"
	jwt := "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln"
	for in, want := range map[string]string{
		"Authorization: Bearer abc.DEF-123_~+/==, then": "Authorization: Bearer ■, then",
		"authorization: BEARER x9":                      "authorization: BEARER ■",
		"Basic " + basic:                                "Basic ■",
		"postgres://u:p%40ss@db:5432/x?sslmode=disable": "postgres://u:■@db:5432/x?sslmode=disable",
		"redis://:pw@cache and amqp://a:b@c":            "redis://:■@cache and amqp://a:■@c",
		"postgres://u:p@ss@db/x":                        "postgres://u:■@db/x",
		"a " + pem + " b " + pem:                        "a ■ b ■",
		"-----BEGIN PRIVATE KEY-----\nMIIE":             "■",
		"key sk_live_4eC39HqLyjWDarjtT1zdp7dc!":         "key ■!",
		"sk_test_4eC39HqLyj and whsec_abcdef12":         "■ and ■",
		"sk-proj-abcdefghijklmnop1234":                  "■",
		"ghp_abcdefghijklmnopqrstuvwxyz123456":          "■",
		"AKIAIOSFODNN7EXAMPLE":                          "■",
		"xoxb-1234567890-abc":                           "■",
		jwt + ".":                                       "■.",
		"host=db password=hunter2 user=u":               "host=db password=■ user=u",
		"https://x.example/cb?access_token=abc&n=1":     "https://x.example/cb?access_token=■&n=1",
		`said {"api_key": "k-1", "n": 2} and left`:      `said {"api_key": "■", "n": 2} and left`,
		`said {\"password\":\"pw\"}`:                    `said {\"password\":\"■\"}`,
		"card 4111 1111 1111 1111 declined":             "card ■ declined",
		"5555-5555-5555-4444, 378282246310005":          "■, ■",
		"4111 1111 1111 1111 12 25":                     "■ 12 25",
		"3 4111 1111 1111 1111":                         "3 ■",
		"卡号4111111111111111。":                           "卡号■。",
		"(4111111111111111).":                           "(■).",
	} {
		out := r.Text(in)
		if got := marker.ReplaceAllString(out, "■"); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
		if again := r.Text(out); again != out {
			t.Errorf("%q is not redacted once and for all: %q, %q", in, out, again)
		}
	}
	for _, plain := range []string{
		"", "a", "Bearer token required", "WWW-Authenticate: Bearer realm", "the bearer of this", "basic information about", "Basic authentication",
		"https://bank.example:8443/pay?q=1", "mailto:a@b.example", "https://user@host/x", "https://x.example/a:b@c",
		"page_token=abc", "next_page_token=5", "total=5", "password reset", "-----BEGIN CERTIFICATE-----\nMIIE", "sk_liver", "risk-averse-approach-to-things",
		"4111 1111 1111 1112", "411111111111111", "41111111111111111111", "9007199254740993", "tx4111111111111111", "4111111111111111ab", "0x4111111111111111",
		"4111111111111111.50", "1.4111111111111111", "4111  1111 1111 1111", "1234567890128", "2026-01-02T10:00:00Z", "+49 30 1234567", "DE89370400440532013000",
		"qt_s6jqukqp5csvtw57qudqndfprz5scrffcbnpqshra5fa667kqwgq",
		"redacted:0123456789abcdef0123456789abcdef", "Bearer redacted:0123456789abcdef0123456789abcdef",
	} {
		if got := r.Text(plain); got != plain {
			t.Errorf("%q became %q", plain, got)
		}
	}
}

func TestCardsInDocuments(t *testing.T) {
	t.Parallel()
	keep := []string{"invoice", "pay.ref"}
	for src, want := range map[string]string{
		`{"memo":"4111111111111111"}`:                   `{"memo":"■"}`,
		`{"card":{"number":"4111 1111 1111 1111"}}`:     `{"card":{"number":"■"}}`,
		`["4111-1111-1111-1111"]`:                       `["■"]`,
		`{"n":4111111111111111}`:                        `{"n":4111111111111111}`,
		`{"invoice":"4111111111111111"}`:                `{"invoice":"4111111111111111"}`,
		`{"pay":{"ref":"x 4111111111111111"}}`:          `{"pay":{"ref":"x 4111111111111111"}}`,
		`{"x":{"invoice":"4111111111111111"}}`:          `{"x":{"invoice":"■"}}`,
		`{"invoice":"4111111111111111 sk_live_abcdef"}`: `{"invoice":"4111111111111111 ■"}`,
		`{"order_id":"4111111111111111"}`:               `{"order_id":"4111111111111111"}`,
		`{"amountWei":"4111111111111111"}`:              `{"amountWei":"4111111111111111"}`,
		`{"reference":["4111111111111111"]}`:            `{"reference":["4111111111111111"]}`,
		`{"order_id":"card 4111111111111111"}`:          `{"order_id":"card ■"}`,
		`{"memo":"41\u0031\u0031111111111111 \ud83d"}`:  `{"memo":"■ \ud83d"}`,
		`{"body":"{\"n\":\"4111111111111111\"}"}`:       `{"body":"{\"n\":\"■\"}"}`,
	} {
		if got := masked(t, src, nil, keep); got != want {
			t.Errorf("%s became %s, want %s", src, got, want)
		}
	}
}

func TestTheRestStaysByteForByte(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"{ \"a\" :\t1.50e+2 ,\n \"b\":\"\\u00e9\\/\\ud83d\\u0000\" , \"password\":\"x\" }": "{ \"a\" :\t1.50e+2 ,\n \"b\":\"\\u00e9\\/\\ud83d\\u0000\" , \"password\":\"■\" }",
		`{"m":"\u00e9\ud83d Bearer \u0061\u0062\u0063\u0031 \ud83d\ude00\n"}`:              `{"m":"\u00e9\ud83d Bearer ■ \ud83d\ude00\n"}`,
		`{"body":"{\"b\":\"{\\\"password\\\":\\\"x\\\",\\\"n\\\":1.0}\"}"}`:                `{"body":"{\"b\":\"{\\\"password\\\":\\\"■\\\",\\\"n\\\":1.0}\"}"}`,
		`{"body":"{\"password\":5}","x":"[not json] Bearer a1"}`:                           `{"body":"{\"password\":\"■\"}","x":"[not json] Bearer ■"}`,
	} {
		if got := masked(t, src, nil, nil); got != want {
			t.Errorf("%s\nbecame %s\nwant   %s", src, got, want)
		}
	}
	src := []byte(`{"vendor":"ACME","amount":"4200.00"}`)
	if out, _, _ := r.JSON(src, nil, nil); &out[0] != &src[0] {
		t.Error("a document without secrets is copied")
	}
}

func TestEqualSecretsHaveEqualReplacements(t *testing.T) {
	t.Parallel()
	of := func(r *redact.Redactor, src string) string {
		out, _, err := r.JSON([]byte(src), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		m := marker.FindString(string(out))
		if m == "" {
			t.Fatalf("%s is not redacted", src)
		}
		return m
	}
	same := []string{`{"password":"pw9"}`, `{"secret":"pw\u0039"}`, `{"dsn":"x://u:pw9@h"}`, `{"b":"{\"token\":\"pw9\"}"}`, `{"m":"Bearer pw9"}`}
	for _, src := range same[1:] {
		if of(r, src) != of(r, same[0]) {
			t.Errorf("%s has another replacement than %s", src, same[0])
		}
	}
	if of(r, `{"secret":{"a":1,"b":2}}`) != of(r, `{"secret":{ "b":2.0,"a":1}}`) {
		t.Error("two spellings of an object have two replacements")
	}
	if of(r, `{"secret":"\ud83d"}`) == of(r, `{"secret":"\ud83e"}`) || of(r, same[0]) == of(r, `{"password":"pw8"}`) {
		t.Error("two secrets have one replacement")
	}
	if of(redact.New([]byte("another")), same[0]) == of(r, same[0]) {
		t.Error("the replacement does not depend on the key")
	}
}

func TestErrorsSayWhereAndNotWhat(t *testing.T) {
	t.Parallel()
	for _, src := range []string{``, `{`, `{"a":tok_secret}`, `{"a":"tok_secret`, `{"a":1} tok_secret`, `{"password":tok_secret}`, `[1,tok_secret]`, `{tok_secret}`,
		strings.Repeat("[", 20000)} {
		_, _, err := r.JSON([]byte(src), nil, nil)
		if err == nil || strings.Contains(err.Error(), "tok") || !strings.Contains(err.Error(), "byte") {
			t.Errorf("%.40s: %v", src, err)
		}
	}
}

// Secrets are put at random places, and must be gone from wherever they were.
func TestNoSecretRemains(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		secret := fmt.Sprintf("S3%016xz", rnd.Uint64())
		forms := []string{"Bearer %s", "x://u:%s@h/p", "sk_live_%s", "password=%s", `{"api_key":"%s"}`, "-----BEGIN PRIVATE KEY-----\n%s"}
		text := func() string {
			return fmt.Sprintf("é\n\"%d\" ", rnd.IntN(9)) + fmt.Sprintf(forms[rnd.IntN(len(forms))], secret)
		}
		var v any = text()
		if rnd.IntN(2) == 0 {
			v = map[string]any{"client_secret": secret, "note": v, "list": []any{text(), 1}}
		}
		for range rnd.IntN(4) {
			switch rnd.IntN(3) {
			case 0:
				v = []any{text(), v, nil}
			case 1:
				v = map[string]any{"a": v, "b": text(), "token_count": 7}
			case 2: // a document inside a string
				inner, _ := json.Marshal([]any{v})
				v = map[string]any{"body": string(inner)}
			}
		}
		src, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if got := masked(t, string(src), nil, nil); strings.Contains(got, secret) {
			t.Fatalf("%s\nbecame %s", src, got)
		}
	}
}

func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{"a":"Bearer a1 4111 1111 1111 1111","password":[1]}`, `{"b":"{\"token\":\"x\\u0041\"}"}`, `["x://u:p@h","redacted:0123456789abcdef0123456789abcdef"]`, `"\ud83dpassword=x"`, `{"a":`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		before := string(src)
		out, _, err := r.JSON(src, []string{"/a/*", "/b"}, []string{"k"})
		if string(src) != before {
			t.Fatal("the input was changed")
		}
		if err != nil {
			if json.Valid(src) {
				t.Fatalf("%q is refused: %v", src, err)
			}
			return
		}
		if !json.Valid(out) {
			t.Fatalf("%q became %q", src, out)
		}
		again, changed, err := r.JSON(out, []string{"/a/*", "/b"}, []string{"k"})
		if err != nil || changed {
			t.Fatalf("%q became %q, then %q (%v)", src, out, again, err)
		}
	})
}

func BenchmarkJSON(b *testing.B) {
	src := []byte(`{"vendor":"ACME Tools","invoice":"INV-9","amount":"4200.00","currency":"USD","approved":true,` +
		`"lines":[{"sku":"A-1","qty":3,"price":1200.50},{"sku":"B-2","qty":1,"price":598.50}],"request_time":"2026-01-02T10:00:00Z"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, changed, err := r.JSON(src, nil, nil); err != nil || changed {
			b.Fatal(changed, err)
		}
	}
}
