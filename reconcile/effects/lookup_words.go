package effects

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"quittance/reconcile/lookup"
)

// lookWords is what a look showed, in a few words.
func lookWords(r lookup.Reason, why string) string {
	switch r {
	case lookup.Mismatch:
		return "found, but its amount, currency or recipient differs"
	case lookup.NotFinal:
		return "found, not final"
	case lookup.NoReference:
		return "found without a reference"
	case lookup.Shared, lookup.Unreferenced:
		return "found, but it could be another call's"
	case lookup.Disputed:
		return "found, but a person closed another call with it"
	case lookup.NoCall:
		return "found, and no call to compare it with"
	case lookup.Matched:
		return "found"
	case lookup.Possible:
		return "something that may be ours was found"
	case lookup.Vanished:
		return "seen before, not shown any more"
	case lookup.WrongWorld:
		return "could not check: the answer came from another world"
	case lookup.Partial:
		return "could not check: not everything was read"
	case lookup.NeverAgain, lookup.Absent:
		return "not taken, as the downstream shows"
	case lookup.NotYet:
		return "not found yet"
	}
	// How many records, or why it could not be checked, stands in its own sentence.
	first, size := utf8.DecodeRuneInString(why)
	return string(unicode.ToLower(first)) + strings.TrimSuffix(why[size:], ".")
}

// Says is what the look showed, in a few words.
func (l LookView) Says() string { return lookWords(l.Reason, l.Why) }
