// Package secret keeps the credentials of look-ups: read once from the environment, put
// where they are needed, and masked wherever else they turn up.
package secret

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml/ast"

	"quittance/reconcile/policy/read"
)

// Mask is what stands in the place of a secret.
const Mask = "[secret]"

// Text is text with secrets in it. It prints as it is written in the policy, also from
// within a struct: fmt cannot look into a function.
type Text struct {
	source string
	value  func() string
	secret bool
}

// String is the text with its references, "Bearer ${env:BANK_TOKEN}".
func (t Text) String() string { return t.source }

// Format prints [Text.String], whatever the verb: a secret must not be printed by %#v.
func (t Text) Format(f fmt.State, _ rune) { fmt.Fprint(f, t.source) }

// MarshalJSON writes [Text.String].
func (t Text) MarshalJSON() ([]byte, error) { return json.Marshal(t.source) }

// Reveal is the text with the secrets in it, for the one place that sends it.
func (t Text) Reveal() string {
	if t.value == nil {
		return ""
	}
	return t.value()
}

// Secret says whether there is a secret in it.
func (t Text) Secret() bool { return t.secret }

var reference = regexp.MustCompile(`\$\{([^}]*)\}`)

var variable = regexp.MustCompile(`^env:([A-Za-z_][A-Za-z0-9_]*)$`)

// Read reads a text in which ${env:NAME} stands for a secret of the environment. One that
// is not set, or empty, is a mistake. The secrets go into set.
func Read(r *read.Reader, n ast.Node, path string, set *Set) Text {
	source, ok := r.Text(n, path)
	if !ok {
		return Text{}
	}
	t := Text{source: source}
	value := reference.ReplaceAllStringFunc(source, func(ref string) string {
		t.secret = true
		name := variable.FindStringSubmatch(ref[2 : len(ref)-1])
		switch {
		case name == nil:
			r.Mistake(n, path, "a secret is written ${env:NAME}")
		case r.Stored:
		default:
			value, there := r.Getenv(name[1])
			if !there || value == "" {
				r.Mistake(n, path, "the environment variable %s is not set", name[1])
			}
			if there && value != "" && len(value) < shortest {
				r.Mistake(n, path, "the environment variable %s holds fewer than %d characters: too few to be recognised and masked", name[1], shortest)
			}
			if strings.ContainsAny(value, "\r\n") && !strings.Contains(value, "-----BEGIN ") {
				r.Mistake(n, path, "the environment variable %s holds a line break", name[1])
			}
			set.Add(value)
			return value
		}
		return ""
	})
	t.value = func() string { return value }
	return t
}

// Need is [Read] for a text that is worth nothing without its secret: one in the open is a
// mistake. n nil is not: that it is missing is for the caller to say.
func Need(r *read.Reader, n ast.Node, path string, set *Set) Text {
	t := Read(r, n, path, set)
	if n != nil && !t.secret {
		InTheOpen(r, n, path)
	}
	return t
}

// InTheOpen reports a secret that stands in the policy itself.
func InTheOpen(r *read.Reader, n ast.Node, path string) {
	r.Mistake(n, path, "holds a secret in the open: write ${env:NAME} and set it in the environment")
}

// Set is the secrets of one source. Safe for concurrent use. Nothing of it can be printed.
type Set struct {
	mu    sync.RWMutex
	forms func() []string // every form in which one may turn up, the longest first
}

// NewSet is an empty one.
func NewSet() *Set { return &Set{forms: func() []string { return nil }} }

// shortest is the length from which a text is looked for: shorter ones turn up by chance.
const shortest = 4

// Add puts a secret into the set, also one that came later, such as an access token.
func (s *Set) Add(value string) {
	if len(value) < shortest {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	forms := slices.Clone(s.forms())
	quoted, _ := json.Marshal(value)
	for _, f := range []string{value, url.QueryEscape(value), url.PathEscape(value), string(quoted[1 : len(quoted)-1]),
		base64.StdEncoding.EncodeToString([]byte(value)), base64.URLEncoding.EncodeToString([]byte(value))} {
		if !slices.Contains(forms, f) {
			forms = append(forms, f)
		}
	}
	slices.SortStableFunc(forms, func(a, b string) int { return len(b) - len(a) })
	s.forms = func() []string { return forms }
}

// Mask replaces every secret of the set in a text.
func (s *Set) Mask(text string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, f := range s.forms() {
		text = strings.ReplaceAll(text, f, Mask)
	}
	return text
}
