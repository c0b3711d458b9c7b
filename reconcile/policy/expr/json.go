package expr

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"quittance/reconcile/canon"
)

// AppendJSON appends what an expression gave. Members are sorted. The error says what
// JSON has no form for.
func AppendJSON(dst []byte, v ref.Val) ([]byte, error) {
	switch v := v.(type) {
	case types.Null:
		return append(dst, "null"...), nil
	case types.Bool:
		return strconv.AppendBool(dst, bool(v)), nil
	case types.Int:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case types.Uint:
		return strconv.AppendUint(dst, uint64(v), 10), nil
	case number:
		return append(dst, v...), nil
	case types.String:
		if !utf8.ValidString(string(v)) {
			return nil, errors.New("holds text that is not valid Unicode")
		}
		quoted, err := json.Marshal(string(v))
		return append(dst, quoted...), err
	case traits.Mapper:
		return appendMap(dst, v)
	case traits.Lister:
		dst = append(dst, '[')
		for i, it := 0, v.Iterator(); it.HasNext() == types.True; i++ {
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = AppendJSON(dst, it.Next()); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	}
	return nil, fmt.Errorf("holds %s, which JSON has no form for", v.Type().TypeName())
}

func appendMap(dst []byte, m traits.Mapper) ([]byte, error) {
	var names []string
	for it := m.Iterator(); it.HasNext() == types.True; {
		name, ok := it.Next().(types.String)
		if !ok {
			return nil, errors.New("has a member whose name is not text")
		}
		names = append(names, string(name))
	}
	slices.Sort(names)
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = AppendJSON(dst, types.String(name)); err != nil {
			return nil, err
		}
		if dst, err = AppendJSON(append(dst, ':'), m.Get(types.String(name))); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// number is a number of a result, exact. It exists to be written down: expressions
// compare numbers as integers or text.
type number string

var numberType = types.NewOpaqueType("number")

func (n number) ConvertToNative(reflect.Type) (any, error) {
	return nil, errors.New("a number of a result has no other form")
}
func (n number) ConvertToType(ref.Type) ref.Val {
	return types.NewErr("a number of a result stays one")
}
func (n number) Equal(other ref.Val) ref.Val { return types.Bool(other == ref.Val(n)) }
func (n number) Type() ref.Type              { return numberType }
func (n number) Value() any                  { return string(n) }

// Number is the function number(x): the exact number that the text x spells, for results
// in which it must be a number again. Large and fractional numbers are text otherwise.
func Number() cel.EnvOption {
	return cel.Function("number", cel.Overload("number_of", []*cel.Type{cel.DynType}, cel.DynType,
		cel.UnaryBinding(func(v ref.Val) ref.Val {
			text := strings.TrimSpace(fmt.Sprint(v.Value()))
			read, err := canon.Parse([]byte(text))
			if err != nil || read.Kind() != canon.Number {
				return types.NewErr("not a number")
			}
			exact, _ := read.Number()
			return number(exact)
		})))
}
