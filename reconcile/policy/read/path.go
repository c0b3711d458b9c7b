package read

import (
	"errors"
	"regexp"
	"strings"
)

// A path names an argument by its member names, "sdk.created_at". Names with a dot or
// any of these marks in them cannot be named: paths of other notations (JSONPath, JSON
// Pointer) are more likely mistakes than such names.
var pathForm = regexp.MustCompile(`^[^.\s{}\[\]/$*"'\\]+(\.[^.\s{}\[\]/$*"'\\]+)*$`)

// CheckPath accepts dotted paths of member names.
func CheckPath(s string) error {
	if !pathForm.MatchString(s) {
		return errors.New("must be a path of member names such as trace_id or sdk.created_at")
	}
	return nil
}

// CheckPointer accepts RFC 6901 pointers; * as a whole segment means every member or
// item.
func CheckPointer(s string) error {
	if !strings.HasPrefix(s, "/") {
		return errors.New("must be a JSON Pointer such as /card/number or /items/*/token")
	}
	for rest := s; ; {
		_, after, found := strings.Cut(rest, "~")
		if !found {
			return nil
		}
		if !strings.HasPrefix(after, "0") && !strings.HasPrefix(after, "1") {
			return errors.New("in a JSON Pointer, ~ is written ~0 and / is written ~1")
		}
		rest = after
	}
}

// Covers says whether leaving out the path outer also leaves out inner.
func Covers(outer, inner string) bool {
	return inner == outer || strings.HasPrefix(inner, outer+".")
}
