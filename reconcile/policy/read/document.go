// Package read turns YAML of the policy into typed values and says every mistake at its
// line. It knows no field of the policy.
package read

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// MaxSource is far above any real file and keeps a wrong path (a log, a dump) from
// being parsed; in bytes.
const MaxSource = 1 << 20

// Surroundings is what a policy refers to outside its own text.
type Surroundings struct {
	// Getenv is a secret by its name.
	Getenv func(name string) (value string, set bool)
	// ReadFile reads a file whose name is relative to the policy's.
	ReadFile func(name string) ([]byte, error)
	// Stored is a policy that was in force once: its secrets and files may be gone and
	// are not asked for, and nobody can be asked by it.
	Stored bool
}

// Document returns the root node of a file, nil for one with nothing in it.
func Document(name string, src []byte) (ast.Node, *Mistake) {
	fail := func(line, column int, problem string) (ast.Node, *Mistake) {
		return nil, &Mistake{File: name, Line: line, Column: column, Problem: problem}
	}
	if len(src) > MaxSource {
		return fail(1, 1, fmt.Sprintf("larger than %d bytes", MaxSource))
	}
	if !utf8.Valid(src) {
		// The parser would put U+FFFD in its place and say nothing.
		for i, line := range strings.Split(string(src), "\n") {
			if !utf8.ValidString(line) {
				return fail(i+1, 1, "invalid UTF-8 in this line")
			}
		}
	}
	file, err := parser.ParseBytes(src, 0, parser.AllowDuplicateMapKey()) // reader reports them all
	if err != nil {
		var at yaml.Error
		if errors.As(err, &at) && at.GetToken() != nil {
			pos := at.GetToken().Position
			return fail(pos.Line, pos.Column, "not YAML: "+at.GetMessage())
		}
		return fail(1, 1, "not YAML: "+err.Error())
	}
	var root ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if root != nil {
			pos := doc.Body.GetToken().Position
			return fail(pos.Line, pos.Column, "a policy is one YAML document")
		}
		root = doc.Body
	}
	return root, nil
}
