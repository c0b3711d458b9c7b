package lookup_test

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/secret"
	"quittance/reconcile/redact"
)

// source answers with what a test says.
type source struct {
	secrets *secret.Set
	ask     func() lookup.Seen
}

func (s source) Ask(context.Context, lookup.Question) lookup.Seen { return s.ask() }
func (s source) Host() string                                     { return "" }
func (s source) Mask(text string) string                          { return s.secrets.Mask(text) }

func ask(t *testing.T, secrets *secret.Set, f func() lookup.Seen) lookup.Seen {
	t.Helper()
	l := lookup.Lookup{Source: source{secrets, f}, Terms: terms()}
	return l.Ask(t.Context(), redact.New([]byte("k")), question())
}

func TestASourceThatPanicsIsInconclusive(t *testing.T) {
	t.Parallel()
	s := ask(t, secret.NewSet(), func() lookup.Seen { panic("zz91") })
	a := lookup.Judge(question(), terms(), s, []lookup.Read{good(noon)})
	if s.Problem != lookup.AdapterError || a.Verdict != lookup.Inconclusive || strings.Contains(a.Why, "zz91") {
		t.Errorf("%s: %s", s.Problem, a.Why)
	}
	none := lookup.Lookup{}
	if s := none.Ask(t.Context(), redact.New([]byte("k")), question()); s.Problem != lookup.AdapterError {
		t.Errorf("without a source: %s", s.Problem)
	}
	if s := none.See(t.Context(), redact.New([]byte("k")), question(), nil); s.Problem != lookup.Unanswered {
		t.Errorf("told without a source: %s", s.Problem)
	}
}

// Wherever an answer is cut, no half of a secret is left.
func TestNoHalfOfASecretIsLeft(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("zz91", 300)
	secrets := secret.NewSet()
	secrets.Add(long)
	for _, before := range []int{0, 1, 1500, 2040, 2047, 2048, 65000, 65536 - 600} {
		s := ask(t, secrets, func() lookup.Seen {
			s := lookup.Seen{Hits: []lookup.Hit{{Record: strings.Repeat("x", before) + long, Result: []byte(`"` + long + `"`)}}}
			s.Body([]byte(strings.Repeat("x", before) + strings.Repeat(long, 60)))
			return s
		})
		for what, text := range map[string]string{"excerpt": s.Excerpt, "record": s.Hits[0].Record, "result": string(s.Hits[0].Result)} {
			if strings.Contains(text, "zz9") || len(text) > 2200 {
				t.Errorf("after %d: the %s of %d bytes holds a part", before, what, len(text))
			}
		}
	}
}

// What is stored fits a text column: valid UTF-8 without NUL.
func TestAnExcerptCanBeStored(t *testing.T) {
	t.Parallel()
	s := ask(t, secret.NewSet(), func() lookup.Seen {
		s := lookup.Seen{}
		s.Body([]byte("a\x00b\xffc" + strings.Repeat("\u20ac", 2000)))
		return s
	})
	if strings.ContainsRune(s.Excerpt, 0) || strings.ToValidUTF8(s.Excerpt, "") != s.Excerpt || !strings.Contains(s.Excerpt, "bytes in all") {
		t.Errorf("%.40q", s.Excerpt)
	}
}

// The names in a source's answer can be anything: they are as fit to be stored as the rest.
func TestWhatASourceSaysOfItselfCanBeStored(t *testing.T) {
	t.Parallel()
	secrets := secret.NewSet()
	secrets.Add("zz91-secret")
	s := ask(t, secrets, func() lookup.Seen {
		odd := "a\x00b\xff zz91-secret " + strings.Repeat("x", 5000)
		return lookup.Seen{World: odd, Detail: odd, Hits: []lookup.Hit{{State: odd}}}
	})
	for what, text := range map[string]string{"world": s.World, "detail": s.Detail, "state": s.Hits[0].State} {
		if strings.ContainsRune(text, 0) || !utf8.ValidString(text) || strings.Contains(text, "zz91") || len(text) > 2200 || !strings.HasPrefix(text, "a") {
			t.Errorf("%s: %.60q of %d bytes", what, text, len(text))
		}
	}
}

func TestTooManyHitsAreNoAnswer(t *testing.T) {
	t.Parallel()
	s := ask(t, secret.NewSet(), func() lookup.Seen {
		s := nothing()
		for i := range 60 {
			s.Hits = append(s.Hits, lookup.Hit{Reference: string(rune('a' + i)), Never: true})
		}
		s.Hits[59] = hit()
		return s
	})
	if a := lookup.Judge(question(), terms(), s, nil); a.Verdict != lookup.Inconclusive || a.Reason != lookup.Partial {
		t.Errorf("%q %s", a.Verdict, a.Reason)
	}
}
