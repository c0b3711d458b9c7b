package read

import (
	"encoding/json"
	"fmt"

	"github.com/goccy/go-yaml/ast"
)

// JSON appends a node as JSON, numbers as they are spelt.
func (r *Reader) JSON(dst []byte, n ast.Node, path string) []byte {
	switch n := n.(type) {
	case *ast.NullNode:
		return append(dst, "null"...)
	case *ast.BoolNode:
		return fmt.Append(dst, n.Value)
	case *ast.IntegerNode, *ast.FloatNode:
		literal := n.GetToken().Value
		if !json.Valid([]byte(literal)) {
			r.Mistake(n, path, "must be a number as JSON writes it")
		}
		return append(dst, literal...)
	case *ast.SequenceNode:
		dst = append(dst, '[')
		for i, item := range n.Values {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = r.JSON(dst, item, fmt.Sprintf("%s[%d]", path, i))
		}
		return append(dst, ']')
	case *ast.MappingNode:
		dst = append(dst, '{')
		for i, e := range r.Entries(n, path) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendString(dst, e.Name), ':')
			dst = r.JSON(dst, e.Value, Join(path, e.Name))
		}
		return append(dst, '}')
	}
	s, _ := r.Text(n, path)
	return appendString(dst, s)
}

func appendString(dst []byte, s string) []byte {
	quoted, _ := json.Marshal(s) // a string always marshals
	return append(dst, quoted...)
}
