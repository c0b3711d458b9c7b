package policy

import (
	"strconv"
	"strings"
	"sync"

	"github.com/goccy/go-yaml/ast"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"quittance/reconcile/canon"
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
	out, _, err := t.refusal.Eval(map[string]any{"error": celValue(errorValue)})
	return err == nil && out == types.True
}

// celValue keeps numbers exact: whole ones as integers where CEL has room for them,
// every other as its decimal text. As floats, 9007199254740993 would equal its
// neighbour.
func celValue(v *canon.Value) any {
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
		return strings.ToValidUTF8(s, "\uFFFD")
	case canon.Array:
		list := make([]any, 0, v.Len())
		for _, item := range v.Items() {
			list = append(list, celValue(item))
		}
		return list
	case canon.Object:
		m := make(map[string]any, v.Len())
		for name, member := range v.Members() {
			m[strings.ToValidUTF8(name, "\uFFFD")] = celValue(member)
		}
		return m
	}
	return nil
}

var refusalEnv = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(cel.Variable("error", cel.DynType))
})

func (r *reader) refusal(n ast.Node, path string) cel.Program {
	source, ok := r.Text(n, path)
	if !ok {
		return nil
	}
	env, err := refusalEnv()
	if err != nil {
		r.Mistake(n, path, "couldn't start the expression language: %s", err)
		return nil
	}
	expr, issues := env.Compile(source)
	if issues.Err() != nil {
		for _, e := range issues.Errors() {
			r.Mistake(n, path, "at character %d of the expression: %s", e.Location.Column()+1, e.Message)
		}
		return nil
	}
	if out := expr.OutputType(); !out.IsExactType(cel.BoolType) && !out.IsExactType(cel.DynType) {
		r.Mistake(n, path, "must give true or false, not %s", out)
		return nil
	}
	program, err := env.Program(expr, cel.CostLimit(maxRefusalCost))
	if err != nil {
		r.Mistake(n, path, "couldn't prepare the expression: %s", err)
		return nil
	}
	return program
}
