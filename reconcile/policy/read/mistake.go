package read

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Mistake is one thing wrong with a policy file, at the place to correct.
type Mistake struct {
	File    string
	Line    int // from 1
	Column  int // from 1, in characters
	Path    string
	Problem string
}

// String is "file:line:column: path: problem", which editors can jump to.
func (m Mistake) String() string {
	if m.Path == "" {
		return fmt.Sprintf("%s:%d:%d: %s", m.File, m.Line, m.Column, m.Problem)
	}
	return fmt.Sprintf("%s:%d:%d: %s: %s", m.File, m.Line, m.Column, m.Path, m.Problem)
}

// Mistakes are all the mistakes of one file, in the order of its lines. It is not an
// error itself, so that an empty list cannot become one: see [Mistakes.Err].
type Mistakes []Mistake

// String has a line for each.
func (m Mistakes) String() string {
	var b strings.Builder
	for i, one := range m {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(one.String())
	}
	return b.String()
}

// Err is nil when there are none.
func (m Mistakes) Err() error {
	if len(m) == 0 {
		return nil
	}
	return errors.New(m.String())
}

// Mistake notes a problem at a node. Every read goes on after it: a file with five
// mistakes reports five.
func (r *Reader) Mistake(at ast.Node, path, problem string, args ...any) {
	pos := at.GetToken().Position
	r.found = append(r.found, Mistake{r.file, pos.Line, pos.Column, path, fmt.Sprintf(problem, args...)})
}
