package expr

import (
	"slices"

	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/parser"
)

// visit walks every part of the expression, what macros became included.
func (e *Expr) visit(f func(celast.Expr)) {
	celast.PreOrderVisit(e.checked.Expr(), celast.NewExprVisitor(f))
}

func (e *Expr) floats() (found bool) {
	e.visit(func(x celast.Expr) {
		switch x.Kind() {
		case celast.LiteralKind:
			_, isDouble := x.AsLiteral().(types.Double)
			found = found || isDouble
		case celast.CallKind:
			found = found || x.AsCall().FunctionName() == "double"
		}
	})
	return found
}

// Calls says whether the expression calls a function of that name.
func (e *Expr) Calls(function string) (found bool) {
	e.visit(func(x celast.Expr) {
		found = found || x.Kind() == celast.CallKind && x.AsCall().FunctionName() == function
	})
	return found
}

// Uses says whether the expression mentions a variable, or a member of it, by any of the
// names: "body", "effect.business_key".
func (e *Expr) Uses(names ...string) (found bool) {
	e.visit(func(x celast.Expr) { found = found || slices.Contains(names, dotted(x)) })
	return found
}

// partial are the functions that are content with a part of a text.
var partial = []string{"contains", "startsWith", "endsWith", "matches", "indexOf", "lastIndexOf", "substring", "split", "replace"}

// ComparesInPart says whether one of the names is compared, on either side, by a function
// that a part of it satisfies: "27" is contained in "1927".
func (e *Expr) ComparesInPart(names ...string) (found bool) {
	e.visit(func(x celast.Expr) {
		if x.Kind() != celast.CallKind || !slices.Contains(partial, x.AsCall().FunctionName()) {
			return
		}
		call := x.AsCall()
		within := slices.Clone(call.Args())
		if call.IsMemberFunction() {
			within = append(within, call.Target())
		}
		for _, arg := range within {
			celast.PreOrderVisit(arg, celast.NewExprVisitor(func(y celast.Expr) {
				found = found || slices.Contains(names, dotted(y))
			}))
		}
	})
	return found
}

// Compares finds the first call of function that has what is called name among its
// arguments, and gives the source of its first other argument: "" where there is none.
func (e *Expr) Compares(function, name string) (source string) {
	e.visit(func(x celast.Expr) {
		if source != "" || x.Kind() != celast.CallKind || x.AsCall().FunctionName() != function {
			return
		}
		args := x.AsCall().Args()
		if !slices.ContainsFunc(args, func(a celast.Expr) bool { return mentions(a, name) }) {
			return
		}
		for _, a := range args {
			if !mentions(a, name) {
				source, _ = parser.Unparse(a, e.checked.SourceInfo())
				return
			}
		}
	})
	return source
}

// Equals is the name of == among calls.
const Equals = operators.Equals

func mentions(x celast.Expr, name string) (found bool) {
	celast.PreOrderVisit(x, celast.NewExprVisitor(func(y celast.Expr) { found = found || dotted(y) == name }))
	return found
}

// dotted is an identifier with its members, "effect.arguments.vendor"; "" for others.
func dotted(x celast.Expr) string {
	switch x.Kind() {
	case celast.IdentKind:
		return x.AsIdent()
	case celast.SelectKind:
		if of := dotted(x.AsSelect().Operand()); of != "" {
			return of + "." + x.AsSelect().FieldName()
		}
	}
	return ""
}
