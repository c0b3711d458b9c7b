// Package rules is the part of a look-up that its policy writes as expressions: which
// records of an answer are hits, whether one matches, and what it proves.
package rules

import (
	"maps"
	"slices"
	"sync"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	"golang.org/x/text/unicode/norm"

	"quittance/reconcile/canon"
	"quittance/reconcile/lookup"
	"quittance/reconcile/policy/expr"
)

// effectFields are what expressions may ask of the effect. A misspelt one is a mistake of
// the policy; one that an effect has no value for makes the expression fail.
var effectFields = map[string]*types.Type{
	"id": types.StringType, "account": types.StringType, "run": types.StringType, "tool": types.StringType,
	"business_key": types.StringType, "vendor_key": types.StringType, "reference": types.StringType,
	"amount":       types.StringType, // decimal, "4200.00"
	"amount_minor": types.StringType, // of the smallest unit, "420000"
	"currency":     types.StringType,
	"arguments":    types.DynType,
	"attempts":     types.IntType,
	"begun_at":     types.TimestampType, // of the first attempt
	"deadline":     types.TimestampType, // of the last attempt
}

// EffectFields are the names of what expressions may ask of the effect, sorted.
func EffectFields() []string { return slices.Sorted(maps.Keys(effectFields)) }

// effectVariable is the effect as expressions see it. What it has no value for is absent
// rather than empty: an empty business key must not equal an empty member of a record.
func effectVariable(q lookup.Question) map[string]any {
	// Like every text of an answer, in NFC: two spellings of a name are one.
	m := map[string]any{
		"id": q.Effect, "account": norm.NFC.String(q.Account), "run": norm.NFC.String(q.Run), "tool": norm.NFC.String(q.Tool),
		"arguments": expr.Value(q.Arguments), "attempts": int64(len(q.Attempts)),
	}
	for name, text := range map[string]string{"business_key": q.BusinessKey, "vendor_key": q.VendorKey, "reference": q.Reference} {
		if text != "" {
			m[name] = norm.NFC.String(text)
		}
	}
	if q.Amount != nil {
		m["amount"], m["amount_minor"] = q.Amount.String(), q.Amount.Atomic().String()
		m["currency"] = q.Amount.Asset().Code
	}
	for i, a := range q.Attempts {
		if i == 0 && !a.Begun.IsZero() {
			m["begun_at"] = a.Begun
		}
		if i == len(q.Attempts)-1 && !a.Deadline.IsZero() {
			m["deadline"] = a.Deadline
		}
	}
	return m
}

const effectType = "quittance.Effect"

// provider adds the type of the effect. Its fields have no accessors: at run time the
// effect is a map, and a field without a value is a missing member.
type provider struct{ types.Provider }

func (p provider) FindStructType(name string) (*types.Type, bool) {
	if name == effectType {
		return types.NewTypeTypeWithParam(types.NewObjectType(effectType)), true
	}
	return p.Provider.FindStructType(name)
}

func (p provider) FindStructFieldNames(name string) ([]string, bool) {
	if name == effectType {
		return EffectFields(), true
	}
	return p.Provider.FindStructFieldNames(name)
}

func (p provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	if name == effectType {
		t, ok := effectFields[field]
		return &types.FieldType{Type: t}, ok
	}
	return p.Provider.FindStructFieldType(name, field)
}

// NewValue: expressions ask about an effect and never make one.
func (p provider) NewValue(name string, fields map[string]ref.Val) ref.Val {
	if name == effectType {
		return types.NewErr("an effect cannot be made")
	}
	return p.Provider.NewValue(name, fields)
}

// maxCost bounds one evaluation: a filter over an answer of 1 MiB stays far below.
const maxCost = 20_000_000

// answerScope is for expressions about a whole answer, hitScope for those about one hit.
var (
	answerScope = sync.OnceValues(func() (*expr.Scope, error) { return scope() })
	hitScope    = sync.OnceValues(func() (*expr.Scope, error) { return scope(cel.Variable("hit", cel.DynType)) })
)

func scope(more ...cel.EnvOption) (*expr.Scope, error) {
	base, err := expr.NewScope(maxCost, cel.OptionalTypes(), ext.Strings(), expr.Number(), sameAmount(), sameAmountFunction())
	if err != nil {
		return nil, err
	}
	return base.Extend(func(p types.Provider) types.Provider { return provider{p} }, append([]cel.EnvOption{
		cel.Variable("effect", cel.ObjectType(effectType)),
		cel.Variable("status", cel.IntType),
		cel.Variable("body", cel.DynType),
	}, more...)...)
}

const sameAmountName = "@same_amount"

// sameAmount is same_amount(x, "minor") or (x, "major"): whether x, a number or the text of
// one, is exactly the effect's amount in that unit.
func sameAmount() cel.EnvOption {
	return cel.Macros(cel.GlobalMacro("same_amount", 2, func(f cel.MacroExprFactory, _ celast.Expr, args []celast.Expr) (celast.Expr, *cel.Error) {
		field := ""
		if args[1].Kind() == celast.LiteralKind {
			switch args[1].AsLiteral() {
			case types.String("minor"):
				field = "amount_minor"
			case types.String("major"):
				field = "amount"
			}
		}
		if field == "" {
			return nil, f.NewError(args[1].ID(), `the unit of same_amount is "minor" or "major"`)
		}
		return f.NewCall(sameAmountName, args[0], f.NewSelect(f.NewIdent("effect"), field)), nil
	}))
}

func sameAmountFunction() cel.EnvOption {
	return cel.Function(sameAmountName, cel.Overload("same_amount_of", []*cel.Type{cel.DynType, cel.StringType}, cel.BoolType,
		cel.BinaryBinding(func(seen, meant ref.Val) ref.Val {
			s, ok := exact(seen)
			m, fine := exact(meant)
			if !ok || !fine {
				return types.NewErr("not an amount")
			}
			return types.Bool(s == m)
		})))
}

// exact is a number in its only plain spelling.
func exact(v ref.Val) (string, bool) {
	text := ""
	switch v := v.(type) {
	case types.String:
		text = string(v)
	case types.Int, types.Uint:
		text = string(v.ConvertToType(types.StringType).(types.String))
	}
	n, err := canon.Parse([]byte(text))
	if err != nil {
		return "", false
	}
	return n.Number()
}
