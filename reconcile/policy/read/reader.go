package read

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// Reader reads typed values out of YAML nodes and collects what is wrong. Each method
// takes nil for a field that is not there and then returns what was the default. path
// is where the node stands, for people.
type Reader struct {
	Surroundings
	file  string
	found Mistakes
}

// New reads the file of that name.
func New(file string, in Surroundings) *Reader { return &Reader{Surroundings: in, file: file} }

// Found are the mistakes so far, in the order of the lines.
func (r *Reader) Found() Mistakes {
	slices.SortStableFunc(r.found, func(a, b Mistake) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column)
	})
	return r.found
}

// Adopt adds the mistakes of another file that this one names.
func (r *Reader) Adopt(other Mistakes) { r.found = append(r.found, other...) }

// Count is how many mistakes there are so far: a caller compares it to learn whether
// what it read was right.
func (r *Reader) Count() int { return len(r.found) }

// Entry is one member of a mapping.
type Entry struct {
	Name       string
	Key, Value ast.Node
}

// Entries are the members of a mapping; one of a name that was there before is a
// mistake and left out. A mapping with nothing in it may also be written as nothing.
func (r *Reader) Entries(n ast.Node, path string) (list []Entry) {
	if n == nil || n.Type() == ast.NullType {
		return nil
	}
	m, ok := n.(*ast.MappingNode)
	if !ok {
		r.Mistake(n, path, "must be a mapping, not %s", KindOf(n))
		return nil
	}
	lines := map[string]int{}
	for _, v := range m.Values {
		key, ok := v.Key.(*ast.StringNode)
		if !ok {
			r.Mistake(v.Key, path, "a name must be text, not %s", KindOf(v.Key))
			continue
		}
		if line, again := lines[key.Value]; again {
			r.Mistake(key, Join(path, key.Value), "was already set on line %d", line)
			continue
		}
		lines[key.Value] = key.GetToken().Position.Line
		list = append(list, Entry{key.Value, key, v.Value})
	}
	return list
}

// Fields are the members of a mapping whose names are fixed; nil where there is no
// mapping, so that its missing members are no further mistakes.
func (r *Reader) Fields(n ast.Node, path string, known ...string) map[string]ast.Node {
	before := len(r.found)
	list := r.Entries(n, path)
	if list == nil && len(r.found) > before {
		return nil
	}
	found := map[string]ast.Node{}
	for _, e := range list {
		if !slices.Contains(known, e.Name) {
			r.Mistake(e.Key, Join(path, e.Name), "unknown field; known here are %s", strings.Join(known, ", "))
			continue
		}
		found[e.Name] = e.Value
	}
	return found
}

// Items are the items of a list.
func (r *Reader) Items(n ast.Node, path string) []ast.Node {
	if n == nil {
		return nil
	}
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		r.Mistake(n, path, "must be a list, not %s", KindOf(n))
		return nil
	}
	return s.Values
}

// Texts reads a list of text, of which each item passes check; nothing twice.
func (r *Reader) Texts(n ast.Node, path string, check func(string) error) (list []string) {
	for i, item := range r.Items(n, path) {
		at := path + "[" + strconv.Itoa(i) + "]"
		s, ok := r.Text(item, at)
		if !ok {
			continue
		}
		if err := check(s); err != nil {
			r.Mistake(item, at, "%s", err)
		} else if slices.Contains(list, s) {
			r.Mistake(item, at, "is in the list already")
		} else {
			list = append(list, s)
		}
	}
	return list
}

// Text is a text; ok is false where it is missing or something else.
func (r *Reader) Text(n ast.Node, path string) (string, bool) {
	switch n := n.(type) {
	case nil:
		return "", false
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	}
	r.Mistake(n, path, "must be text, not %s", KindOf(n))
	return "", false
}

// Spelling is text or a number as it is written in the file: nothing goes through a
// float.
func (r *Reader) Spelling(n ast.Node, path string) (string, bool) {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		return n.GetToken().Value, true
	}
	return r.Text(n, path)
}

// Whole is a whole number between two.
func (r *Reader) Whole(n ast.Node, path string, otherwise, least, most int) int {
	s, ok := r.Spelling(n, path)
	if !ok {
		return otherwise
	}
	i, err := strconv.Atoi(s)
	if err != nil || i < least || i > most {
		r.Mistake(n, path, "must be a whole number from %d to %d", least, most)
		return otherwise
	}
	return i
}

// Boolean is false where there is nothing.
func (r *Reader) Boolean(n ast.Node, path string) bool {
	if n == nil {
		return false
	}
	b, ok := n.(*ast.BoolNode)
	if !ok {
		r.Mistake(n, path, "must be true or false, not %s", KindOf(n))
		return false
	}
	return b.Value
}

// Choice is one of the allowed words.
func (r *Reader) Choice(n ast.Node, path string, otherwise string, allowed ...string) string {
	s, ok := r.Text(n, path)
	if !ok {
		return otherwise
	}
	if !slices.Contains(allowed, s) {
		r.Mistake(n, path, "must be %s", strings.Join(allowed, " or "))
		return otherwise
	}
	return s
}

// Duration reads 10s, 1h30m or 90d; least is the smallest that is allowed.
func (r *Reader) Duration(n ast.Node, path string, otherwise, least time.Duration) time.Duration {
	s, ok := r.Spelling(n, path)
	if !ok {
		return otherwise
	}
	d, ok := parseDuration(s)
	switch {
	case !ok:
		r.Mistake(n, path, "must be a duration such as 10s, 5m, 24h or 90d")
	case d < 0:
		r.Mistake(n, path, "must not be negative")
	case d < least:
		r.Mistake(n, path, "must be at least %s", least)
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

// Join is the path of a member.
func Join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// KindOf names what a node is, for a sentence.
func KindOf(n ast.Node) string {
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
