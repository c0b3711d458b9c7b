package read

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"quittance/reconcile/canon"
)

// Template is text with arguments in it: "Pay {amount} to {vendor.name}". A brace
// itself is written twice.
type Template struct {
	Source string
	Parts  []Part
}

// Part is literal text, or the path of an argument.
type Part struct{ Text, Path string }

// ParseTemplate reads one; the error says which brace is wrong.
func ParseTemplate(source string) (Template, error) {
	t := Template{Source: source}
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			t.Parts = append(t.Parts, Part{Text: literal.String()})
			literal.Reset()
		}
	}
	for rest := source; rest != ""; {
		i := strings.IndexAny(rest, "{}")
		if i < 0 {
			literal.WriteString(rest)
			break
		}
		literal.WriteString(rest[:i])
		brace := rest[i : i+1]
		if strings.HasPrefix(rest[i+1:], brace) {
			literal.WriteString(brace)
			rest = rest[i+2:]
			continue
		}
		path, after, closed := strings.Cut(rest[i+1:], "}")
		switch {
		case brace == "}":
			return t, errors.New("a } without a {: to write a brace, write it twice")
		case !closed:
			return t, errors.New("a { that is not closed: to write a brace, write it twice")
		case CheckPath(path) != nil:
			return t, fmt.Errorf("{%s} %w", path, CheckPath(path))
		}
		flush()
		t.Parts = append(t.Parts, Part{Path: path})
		rest = after
	}
	flush()
	return t, nil
}

// Template reads one, nil where there is none.
func (r *Reader) Template(n ast.Node, path string) *Template {
	s, ok := r.Text(n, path)
	if !ok {
		return nil
	}
	t, err := ParseTemplate(s)
	if err != nil {
		r.Mistake(n, path, "%s", err)
		return nil
	}
	return &t
}

// Fields are the paths in the template, each once.
func (t Template) Fields() (paths []string) {
	for _, p := range t.Parts {
		if p.Path != "" && !slices.Contains(paths, p.Path) {
			paths = append(paths, p.Path)
		}
	}
	return paths
}

// Scalar is the text of an argument that can stand in a line: text, a number in plain
// exact digits, or a boolean.
func Scalar(v *canon.Value) (string, bool) {
	if s, ok := v.Text(); ok {
		return s, true
	}
	if n, ok := v.Number(); ok {
		return n, true
	}
	if b, ok := v.Bool(); ok {
		return fmt.Sprint(b), true
	}
	return "", false
}
