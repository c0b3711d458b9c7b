package policy

import (
	"context"
	"sync"

	"github.com/goccy/go-yaml/ast"
	"github.com/google/cel-go/cel"

	"quittance/reconcile/canon"
	"quittance/reconcile/policy/expr"
)

// maxRefusalCost bounds one evaluation: far above any comparison of codes, far below a
// loop over everything in a large error.
const maxRefusalCost = 100_000

// Refused says whether an error reported by an agent is a definite refusal by the
// downstream. An expression that fails on this error (a member that is not there) says
// no: unknown is the safe answer.
func (t *Tool) Refused(errorValue *canon.Value) bool {
	if t.refusal == nil || errorValue.Kind() == canon.Missing {
		return false
	}
	yes, err := t.refusal.True(context.Background(), map[string]any{"error": expr.Value(errorValue)})
	return err == nil && yes
}

var refusalScope = sync.OnceValues(func() (*expr.Scope, error) {
	return expr.NewScope(maxRefusalCost, cel.Variable("error", cel.DynType))
})

func (r *reader) refusal(n ast.Node, path string) *expr.Expr {
	scope, err := refusalScope()
	if err != nil {
		r.Mistake(n, path, "%s", err)
		return nil
	}
	return scope.Compile(r.Reader, n, path, expr.Bool)
}
