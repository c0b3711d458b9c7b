package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"golang.org/x/text/unicode/norm"

	"quittance/reconcile/canon"
	"quittance/reconcile/policy/read"
)

// MaxBusinessKey is the longest business key, in bytes.
const MaxBusinessKey = 1024

// ErrBusinessKeyTooLong is returned for arguments that make a longer one.
var ErrBusinessKeyTooLong = fmt.Errorf("the business key is longer than %d bytes", MaxBusinessKey)

// HasBusinessKey says whether the tool declares one.
func (t *Tool) HasBusinessKey() bool { return t.businessKey != nil }

// BusinessKeyTemplate is the declared text, "" without one. Stored keys are recomputed
// when it changes.
func (t *Tool) BusinessKeyTemplate() string {
	if t.businessKey == nil {
		return ""
	}
	return t.businessKey.Source
}

// BusinessKey is what the outside world calls this call, in NFC. A field that is not
// there, empty, null, an object or an array is missing; so is one with a NUL or a lone
// surrogate, which no downstream can search for. With any missing there is no key.
// The error is [ErrBusinessKeyTooLong]. Without a declared key all three are empty.
func (t *Tool) BusinessKey(args *canon.Value) (key string, missing []string, err error) {
	if t.businessKey == nil {
		return "", nil, nil
	}
	var b strings.Builder
	for _, p := range t.businessKey.Parts {
		if p.Path == "" {
			b.WriteString(p.Text)
			continue
		}
		s, ok := read.Scalar(args.Lookup(p.Path))
		if !ok || strings.TrimSpace(s) == "" || !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
			if !slices.Contains(missing, p.Path) {
				missing = append(missing, p.Path)
			}
			continue
		}
		b.WriteString(s)
	}
	if len(missing) > 0 {
		return "", missing, nil
	}
	if key = norm.NFC.String(b.String()); len(key) > MaxBusinessKey {
		return "", nil, ErrBusinessKeyTooLong
	}
	return key, nil, nil
}

// ParseBusinessKey is a tool that knows only its business key: for checking calls
// against the template that was in force before.
func ParseBusinessKey(source string) (*Tool, error) {
	tpl, err := read.ParseTemplate(source)
	if err == nil {
		err = checkKeyTemplate(tpl)
	}
	if err != nil {
		return nil, fmt.Errorf("couldn't read the business key: %w", err)
	}
	return &Tool{businessKey: &tpl}, nil
}

func checkKeyTemplate(t read.Template) error {
	if len(t.Fields()) == 0 {
		return errors.New("names no argument, so that all calls would have one key")
	}
	return nil
}

func (r *reader) keyTemplate(n ast.Node, path string) *read.Template {
	t := r.Template(n, path)
	if t == nil {
		return nil
	}
	if err := checkKeyTemplate(*t); err != nil {
		r.Mistake(n, path, "%s", err)
		return nil
	}
	return t
}
