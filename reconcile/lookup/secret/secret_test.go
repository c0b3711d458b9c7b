package secret_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"quittance/reconcile/lookup/secret"
	"quittance/reconcile/policy/read"
)

func text(t *testing.T, source string) (secret.Text, *secret.Set) {
	t.Helper()
	r := read.New("f", read.Surroundings{Getenv: func(name string) (string, bool) { return "zz91/+ =\"" + name, true }})
	root, m := read.Document("f", []byte("a: "+source))
	if m != nil {
		t.Fatal(m)
	}
	set := secret.NewSet()
	out := secret.Read(r, r.Fields(root, "", "a")["a"], "a", set)
	if err := r.Found().Err(); err != nil {
		t.Fatal(err)
	}
	return out, set
}

func TestASecretIsNeverPrinted(t *testing.T) {
	t.Parallel()
	s, set := text(t, `"Bearer ${env:A}"`)
	if s.Reveal() != `Bearer zz91/+ ="A` || !s.Secret() {
		t.Errorf("revealed %q", s.Reveal())
	}
	type inside struct {
		Shown  secret.Text
		hidden secret.Text
		set    *secret.Set
	}
	in := inside{s, s, set}
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	printed := string(raw)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, what := range []any{s, &s, in, &in, []any{s}, map[string]any{"a": in}, set} {
			printed += fmt.Sprintf(verb, what)
		}
	}
	if strings.Contains(printed, "zz91") {
		t.Error("a secret was printed")
	}
	if s.String() != "Bearer ${env:A}" {
		t.Errorf("it prints as %q", s)
	}
}

func TestMaskFindsEveryForm(t *testing.T) {
	t.Parallel()
	s, set := text(t, `"${env:A}"`)
	value := s.Reveal()
	quoted, _ := json.Marshal(value)
	for _, form := range []string{value, url.QueryEscape(value), url.PathEscape(value), string(quoted), base64.StdEncoding.EncodeToString([]byte(value))} {
		masked := set.Mask("before " + form + " after")
		if strings.Contains(masked, "zz91") || strings.Contains(masked, form) || !strings.HasPrefix(masked, "before ") || !strings.HasSuffix(masked, " after") {
			t.Errorf("%q became %q", form, masked)
		}
	}
	if plain := set.Mask("nothing here"); plain != "nothing here" {
		t.Errorf("%q", plain)
	}
}
