package rules

import (
	"context"

	"github.com/goccy/go-yaml/ast"

	"quittance/reconcile/canon"
	"quittance/reconcile/lookup"
	"quittance/reconcile/policy/expr"
	"quittance/reconcile/policy/read"
)

// Result is the one expression of a look-up whose hits are recognised without any: what
// is replayed to the agent.
type Result struct{ rules *Rules }

// ReadResult reads it; without one the record itself is the result.
func ReadResult(r *read.Reader, n ast.Node, path string, tool Tool) Result {
	rules := &Rules{checkResult: tool.CheckResult}
	scope, err := hitScope()
	if err != nil {
		r.Mistake(n, path, "%s", err)
		return Result{rules}
	}
	if n != nil {
		rules.result = scope.Compile(r, n, path, expr.Any)
		if rules.result != nil {
			checkEffect(r, n, path, rules.result, tool)
		}
	}
	return Result{rules}
}

// Of is the result that a record, a JSON object, gives.
func (x Result) Of(ctx context.Context, q lookup.Question, record []byte) ([]byte, error) {
	if x.rules.result == nil {
		if x.rules.checkResult == nil {
			return record, nil
		}
		return record, x.rules.checkResult(record)
	}
	hit, err := canon.ParseObject(record)
	if err != nil {
		return nil, err
	}
	vars := Asker{x.rules, effectVariable(q), q.Amount}.answer(Answer{Status: 200, Body: hit})
	vars["hit"] = expr.Value(hit)
	return Asker{rules: x.rules}.result(ctx, vars)
}
