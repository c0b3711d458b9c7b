// Package canon reads the JSON that agents send, strictly, and derives from it the
// one form that keys are computed over.
//
// Two spellings of the same call (members in another order, 1.0 for 1, decomposed
// letters) have one canonical form; two calls that differ in anything else have
// two. Nothing passes through a float, and nothing is glued: every part of the form
// carries its type and its length.
//
// The canonical form is never stored or shown. What an agent sent is stored as sent.
package canon

import (
	"fmt"
	"io"
	"iter"
)

// Kind is the JSON type of a [Value].
type Kind uint8

// The kinds. Missing is the kind of a nil *Value, which is what a look-up of an
// absent member returns: null is not missing.
const (
	Missing Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

var kindNames = [...]string{"nothing", "null", "a boolean", "a number", "a string", "an array", "an object"}

// String names the kind with its article, for use in a sentence.
func (k Kind) String() string { return kindNames[k] }

// Value is one parsed JSON value. It is immutable and safe for concurrent use; a nil
// *Value is valid and stands for a missing value.
type Value struct {
	kind Kind
	yes  bool   // of a Bool
	name string // of an object's member, in NFC
	text string // String: decoded, lone surrogates as WTF-8; Number: the literal as sent
	kids []Value
}

// Kind is the value's JSON type.
func (v *Value) Kind() Kind {
	if v == nil {
		return Missing
	}
	return v.kind
}

// Bool returns the boolean, and whether the value is one.
func (v *Value) Bool() (value, ok bool) {
	if v.Kind() != Bool {
		return false, false
	}
	return v.yes, true
}

// Text returns the decoded text as it was sent (not normalised), and whether the
// value is a string. A lone surrogate is in it as three bytes that are not valid
// UTF-8, so that two of them stay different.
func (v *Value) Text() (text string, ok bool) {
	if v.Kind() != String {
		return "", false
	}
	return v.text, true
}

// Number returns the exact number in plain decimal digits ("100", "-0.5", never an
// exponent, no needless zeros), and whether the value is a number.
func (v *Value) Number() (decimal string, ok bool) {
	if v.Kind() != Number {
		return "", false
	}
	return parseDecimal(v.text).plain(), true
}

// Len is the number of members or items; 0 for anything else.
func (v *Value) Len() int {
	if v == nil {
		return 0
	}
	return len(v.kids)
}

// Members walks an object in the order it was sent. Names are in NFC.
func (v *Value) Members() iter.Seq2[string, *Value] {
	return func(yield func(string, *Value) bool) {
		if v.Kind() != Object {
			return
		}
		for i := range v.kids {
			if !yield(v.kids[i].name, &v.kids[i]) {
				return
			}
		}
	}
}

// Items walks an array.
func (v *Value) Items() iter.Seq2[int, *Value] {
	return func(yield func(int, *Value) bool) {
		if v.Kind() != Array {
			return
		}
		for i := range v.kids {
			if !yield(i, &v.kids[i]) {
				return
			}
		}
	}
}

// Format prints the kind and never the content, whatever the verb: a value that
// slips into a log line or an error must not take a secret with it.
func (v *Value) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, v.Kind().String())
}
