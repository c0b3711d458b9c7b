package policy

import (
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"quittance/reconcile/canon"
	"quittance/reconcile/policy/read"
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

func (t *Tool) place(tpl read.Template, args *canon.Value) Place {
	place := Place{Text: t.filled(tpl, args)}
	if !isLink(tpl) {
		return place
	}
	place.URL, _ = tpl.URL(func(path string) (string, error) { // "" where it fails
		s, ok := read.Scalar(args.Lookup(path))
		if !ok || s == "" {
			return "", errors.New("missing")
		}
		return s, nil
	})
	return place
}

func isLink(t read.Template) bool {
	return strings.HasPrefix(t.Source, "https://") || strings.HasPrefix(t.Source, "http://")
}

func (r *reader) places(n ast.Node, path string) (list []read.Template) {
	for i, item := range r.Items(n, path) {
		at := path + "[" + strconv.Itoa(i) + "]"
		t := r.Template(item, at)
		if t == nil {
			continue
		}
		if isLink(*t) && !fixedHost(*t) {
			r.Mistake(item, at, "the host of a link must be fixed: an argument may stand only after it")
			continue
		}
		list = append(list, *t)
	}
	return list
}

// fixedHost says whether the first piece of the link holds its whole host.
func fixedHost(t read.Template) bool {
	first := t.Parts[0].Text
	u, err := url.Parse(first)
	if err != nil || u.Host == "" || u.User != nil {
		return false
	}
	_, after, _ := strings.Cut(first, "://")
	return len(t.Parts) == 1 || strings.ContainsAny(after, "/?#")
}
