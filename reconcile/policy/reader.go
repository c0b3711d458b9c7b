package policy

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// reader reads typed values out of YAML nodes and collects what is wrong. Each method
// takes nil for a field that is not there and then returns what was the default.
type reader struct {
	file  string
	found Mistakes
}

// entry is one member of a mapping.
type entry struct {
	name       string
	key, value ast.Node
}

// entries are the members of a mapping; one of a name that was there before is a
// mistake and left out. A mapping with nothing in it may also be written as nothing.
func (r *reader) entries(n ast.Node, path string) (list []entry) {
	if n == nil || n.Type() == ast.NullType {
		return nil
	}
	m, ok := n.(*ast.MappingNode)
	if !ok {
		r.mistake(n, path, "must be a mapping, not %s", kindOf(n))
		return nil
	}
	lines := map[string]int{}
	for _, v := range m.Values {
		key, ok := v.Key.(*ast.StringNode)
		if !ok {
			r.mistake(v.Key, path, "a name must be text, not %s", kindOf(v.Key))
			continue
		}
		if line, again := lines[key.Value]; again {
			r.mistake(key, join(path, key.Value), "was already set on line %d", line)
			continue
		}
		lines[key.Value] = key.GetToken().Position.Line
		list = append(list, entry{key.Value, key, v.Value})
	}
	return list
}

// fields are the members of a mapping whose names are fixed; nil where there is no
// mapping, so that its missing members are no further mistakes.
func (r *reader) fields(n ast.Node, path string, known ...string) map[string]ast.Node {
	before := len(r.found)
	list := r.entries(n, path)
	if list == nil && len(r.found) > before {
		return nil
	}
	found := map[string]ast.Node{}
	for _, e := range list {
		if !slices.Contains(known, e.name) {
			r.mistake(e.key, join(path, e.name), "unknown field; known here are %s", strings.Join(known, ", "))
			continue
		}
		found[e.name] = e.value
	}
	return found
}

func (r *reader) items(n ast.Node, path string) []ast.Node {
	if n == nil {
		return nil
	}
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		r.mistake(n, path, "must be a list, not %s", kindOf(n))
		return nil
	}
	return s.Values
}

// texts reads a list of text, of which each item passes check; nothing twice.
func (r *reader) texts(n ast.Node, path string, check func(string) error) (list []string) {
	for i, item := range r.items(n, path) {
		at := path + "[" + strconv.Itoa(i) + "]"
		s, ok := r.text(item, at)
		if !ok {
			continue
		}
		if err := check(s); err != nil {
			r.mistake(item, at, "%s", err)
		} else if slices.Contains(list, s) {
			r.mistake(item, at, "is in the list already")
		} else {
			list = append(list, s)
		}
	}
	return list
}

func (r *reader) text(n ast.Node, path string) (string, bool) {
	switch n := n.(type) {
	case nil:
		return "", false
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	}
	r.mistake(n, path, "must be text, not %s", kindOf(n))
	return "", false
}

// spelling is text or a number as it is written in the file: nothing goes through a
// float.
func (r *reader) spelling(n ast.Node, path string) (string, bool) {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		return n.GetToken().Value, true
	}
	return r.text(n, path)
}

func (r *reader) boolean(n ast.Node, path string) bool {
	if n == nil {
		return false
	}
	b, ok := n.(*ast.BoolNode)
	if !ok {
		r.mistake(n, path, "must be true or false, not %s", kindOf(n))
		return false
	}
	return b.Value
}

func (r *reader) choice(n ast.Node, path string, otherwise string, allowed ...string) string {
	s, ok := r.text(n, path)
	if !ok {
		return otherwise
	}
	if !slices.Contains(allowed, s) {
		r.mistake(n, path, "must be %s", strings.Join(allowed, " or "))
		return otherwise
	}
	return s
}

// duration reads 10s, 1h30m or 90d; least is the smallest that is allowed.
func (r *reader) duration(n ast.Node, path string, otherwise, least time.Duration) time.Duration {
	s, ok := r.spelling(n, path)
	if !ok {
		return otherwise
	}
	d, ok := parseDuration(s)
	switch {
	case !ok:
		r.mistake(n, path, "must be a duration such as 10s, 5m, 24h or 90d")
	case d < 0:
		r.mistake(n, path, "must not be negative")
	case d < least:
		r.mistake(n, path, "must be at least %s", least)
	default:
		return d
	}
	return otherwise
}

func parseDuration(s string) (time.Duration, bool) {
	const day = 24 * time.Hour
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 64)
		return time.Duration(n) * day, err == nil && n >= -int64(math.MaxInt64/day) && n <= int64(math.MaxInt64/day)
	}
	d, err := time.ParseDuration(s)
	return d, err == nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func kindOf(n ast.Node) string {
	switch n.Type() {
	case ast.NullType:
		return "nothing"
	case ast.BoolType:
		return "a boolean"
	case ast.IntegerType, ast.FloatType, ast.InfinityType, ast.NanType:
		return "a number"
	case ast.StringType, ast.LiteralType:
		return "text"
	case ast.MappingType, ast.MappingValueType:
		return "a mapping"
	case ast.SequenceType:
		return "a list"
	}
	return "an anchor, alias, tag or merge (write it out)"
}
