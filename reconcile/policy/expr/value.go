// Package expr compiles and runs the expressions of the policy (CEL). No number passes
// through a float, and an expression that fails says so instead of giving a value.
package expr

import (
	"strconv"

	"golang.org/x/text/unicode/norm"

	"quittance/reconcile/canon"
)

// Value is JSON as expressions see it. Whole numbers are integers where CEL has room for
// them, every other number is its exact decimal text: as floats, 9007199254740993 would
// equal its neighbour. Text is in NFC, so that two spellings of a name are one.
func Value(v *canon.Value) any {
	switch v.Kind() {
	case canon.Bool:
		b, _ := v.Bool()
		return b
	case canon.Number:
		n, _ := v.Number()
		if i, err := strconv.ParseInt(n, 10, 64); err == nil {
			return i
		}
		if u, err := strconv.ParseUint(n, 10, 64); err == nil {
			return u
		}
		return n
	case canon.String:
		s, _ := v.Text()
		return norm.NFC.String(s)
	case canon.Array:
		list := make([]any, 0, v.Len())
		for _, item := range v.Items() {
			list = append(list, Value(item))
		}
		return list
	case canon.Object:
		m := make(map[string]any, v.Len())
		for name, member := range v.Members() {
			m[name] = Value(member)
		}
		return m
	}
	return nil
}
