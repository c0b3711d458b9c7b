package canon

import (
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Lookup follows a dotted path of member names ("sdk.created_at") and returns nil
// where a part is missing. It goes through objects only; an empty path is the value
// itself.
func (v *Value) Lookup(path string) *Value {
	for more := path != ""; more && v != nil; {
		var name string
		name, path, more = strings.Cut(path, ".")
		v = v.member(norm.NFC.String(name))
	}
	return v
}

func (v *Value) member(name string) *Value {
	if v.Kind() != Object {
		return nil
	}
	for i := range v.kids {
		if v.kids[i].name == name {
			return &v.kids[i]
		}
	}
	return nil
}

// Without returns the value less exactly the members at the dotted paths: another
// member of the same name elsewhere stays, and an object that loses its last member
// stays as an empty one. v itself is unchanged.
func (v *Value) Without(paths []string) *Value {
	for _, path := range paths {
		v = v.without(norm.NFC.String(path))
	}
	return v
}

func (v *Value) without(path string) *Value {
	name, rest, deeper := strings.Cut(path, ".")
	child := v.member(name)
	if child == nil || deeper && child.Lookup(rest) == nil {
		return v
	}
	less := *v
	less.kids = make([]Value, 0, len(v.kids))
	for i := range v.kids {
		switch m := &v.kids[i]; {
		case m.name != name:
			less.kids = append(less.kids, *m)
		case deeper:
			less.kids = append(less.kids, *m.without(rest))
		}
	}
	return &less
}
