package policy

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"quittance/reconcile/canon"
)

// Place is where a person can look whether a call took effect.
type Place struct {
	Text string // what to show
	URL  string // "" unless it is a link that can be followed
}

// WhereToCheck are the declared places for a call. In a link each value is escaped for
// where it stands, so that no argument can change where the link leads; with an argument
// missing the place is text alone.
func (t *Tool) WhereToCheck(args *canon.Value) []Place {
	places := make([]Place, 0, len(t.places))
	for _, tpl := range t.places {
		places = append(places, t.place(tpl, args))
	}
	return places
}

func (t *Tool) place(tpl template, args *canon.Value) Place {
	link := isLink(tpl)
	var text, target strings.Builder
	escape, inPath, inFragment := url.PathEscape, true, false
	for _, p := range tpl.parts {
		if p.path == "" {
			text.WriteString(p.text)
			target.WriteString(p.text)
			// The path ends at the first ?, and both end at the first #.
			if strings.ContainsAny(p.text, "?#") && !inFragment {
				inPath, inFragment = false, strings.Contains(p.text, "#")
				if escape = url.QueryEscape; inFragment {
					escape = url.PathEscape
				}
			}
			continue
		}
		v := args.Lookup(p.path)
		text.WriteString(t.shown(p.path, v, args))
		s, ok := scalar(v)
		switch {
		// A browser takes dots alone for "go up", however they are escaped.
		case !ok, s == "", inPath && strings.Trim(s, ".") == "":
			link = false
		default:
			target.WriteString(escape(s))
		}
	}
	if !link {
		return Place{Text: text.String()}
	}
	return Place{Text: text.String(), URL: target.String()}
}

func isLink(t template) bool {
	return strings.HasPrefix(t.source, "https://") || strings.HasPrefix(t.source, "http://")
}

func (r *reader) places(n ast.Node, path string) (list []template) {
	for i, item := range r.items(n, path) {
		at := path + "[" + strconv.Itoa(i) + "]"
		t := r.template(item, at)
		if t == nil {
			continue
		}
		if isLink(*t) && !fixedHost(*t) {
			r.mistake(item, at, "the host of a link must be fixed: an argument may stand only after it")
			continue
		}
		list = append(list, *t)
	}
	return list
}

// fixedHost says whether the first piece of the link holds its whole host.
func fixedHost(t template) bool {
	first := t.parts[0].text
	u, err := url.Parse(first)
	if err != nil || u.Host == "" || u.User != nil {
		return false
	}
	_, after, _ := strings.Cut(first, "://")
	return len(t.parts) == 1 || strings.ContainsAny(after, "/?#")
}
