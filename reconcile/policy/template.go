package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"quittance/reconcile/canon"
)

// template is text with arguments in it: "Pay {amount} to {vendor.name}". A brace
// itself is written twice.
type template struct {
	source string
	parts  []part
}

// part is literal text, or the path of an argument.
type part struct{ text, path string }

func parseTemplate(source string) (template, error) {
	t := template{source: source}
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			t.parts = append(t.parts, part{text: literal.String()})
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
		case checkPath(path) != nil:
			return t, fmt.Errorf("{%s} %w", path, checkPath(path))
		}
		flush()
		t.parts = append(t.parts, part{path: path})
		rest = after
	}
	flush()
	return t, nil
}

func (r *reader) template(n ast.Node, path string) *template {
	s, ok := r.text(n, path)
	if !ok {
		return nil
	}
	t, err := parseTemplate(s)
	if err != nil {
		r.mistake(n, path, "%s", err)
		return nil
	}
	return &t
}

// fields are the paths in the template, each once.
func (t template) fields() (paths []string) {
	for _, p := range t.parts {
		if p.path != "" && !slices.Contains(paths, p.path) {
			paths = append(paths, p.path)
		}
	}
	return paths
}

// scalar is the text of an argument that can stand in a line: text, a number in plain
// exact digits, or a boolean.
func scalar(v *canon.Value) (string, bool) {
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
