package canon

import (
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// AppendCanonical appends the canonical form. Every part says its type and where it
// ends, so no two different values share a form and no form is the start of another:
//
//	null z · true t · false f
//	number   n[-]DIGITSeEXPONENT;      (0 is n0e0; 1200 is n12e2;)
//	string   sLENGTH:BYTES             (NFC; LENGTH in bytes)
//	array    aCOUNT:ITEMS
//	object   oCOUNT:(NAME VALUE)...    (names as strings, sorted by their bytes)
//
// A missing value is m, which differs from null.
func (v *Value) AppendCanonical(dst []byte) []byte {
	switch v.Kind() {
	case Null:
		return append(dst, 'z')
	case Bool:
		if v.yes {
			return append(dst, 't')
		}
		return append(dst, 'f')
	case Number:
		return appendNumber(dst, parseDecimal(v.text))
	case String:
		return appendText(dst, norm.NFC.String(v.text))
	case Array:
		dst = appendCount(dst, 'a', len(v.kids))
		for i := range v.kids {
			dst = v.kids[i].AppendCanonical(dst)
		}
		return dst
	case Object:
		dst = appendCount(dst, 'o', len(v.kids))
		var few [16]*Value // on the stack for objects of usual size
		for _, m := range v.sorted(few[:0]) {
			dst = appendText(dst, m.name)
			dst = m.AppendCanonical(dst)
		}
		return dst
	}
	return append(dst, 'm')
}

func (v *Value) sorted(dst []*Value) []*Value {
	for i := range v.kids {
		dst = append(dst, &v.kids[i])
	}
	slices.SortFunc(dst, func(a, b *Value) int { return strings.Compare(a.name, b.name) })
	return dst
}

func appendNumber(dst []byte, d decimal) []byte {
	dst = append(dst, 'n')
	if d.neg {
		dst = append(dst, '-')
	}
	dst = append(append(dst, d.head...), d.tail...)
	if d.head == "" && d.tail == "" {
		dst = append(dst, '0')
	}
	dst = strconv.AppendInt(append(dst, 'e'), int64(d.exp), 10)
	return append(dst, ';')
}

func appendText(dst []byte, s string) []byte {
	return append(appendCount(dst, 's', len(s)), s...)
}

func appendCount(dst []byte, tag byte, n int) []byte {
	return append(strconv.AppendInt(append(dst, tag), int64(n), 10), ':')
}
