package read

import (
	"fmt"
	"net/url"
	"strings"
)

// URL fills the template of a URL, each value escaped for where it stands, so that no value
// can change where it leads. The error is value's, or says which field cannot stand where it
// does.
func (t Template) URL(value func(path string) (string, error)) (string, error) {
	var b strings.Builder
	escape, inPath := url.PathEscape, true
	for _, p := range t.Parts {
		if p.Path == "" {
			b.WriteString(p.Text)
			// The path ends at the first ?, and both end at the first #.
			switch sofar := b.String(); {
			case strings.Contains(sofar, "#"):
				escape, inPath = url.PathEscape, false
			case strings.Contains(sofar, "?"):
				escape, inPath = url.QueryEscape, false
			}
			continue
		}
		v, err := value(p.Path)
		if err != nil {
			return "", err
		}
		// Dots alone mean "go up", however they are escaped.
		if inPath && strings.Trim(v, ".") == "" {
			return "", fmt.Errorf("%s is dots alone, which cannot stand in a path", p.Path)
		}
		b.WriteString(escape(v))
	}
	return b.String(), nil
}
