package expr

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"golang.org/x/text/unicode/norm"

	"quittance/reconcile/policy/read"
)

// Kinds of values that an expression may be asked to give.
var (
	Bool = cel.BoolType
	Text = cel.StringType
	Time = cel.TimestampType
	List = cel.ListType(cel.DynType)
	Any  = cel.DynType
)

// Scope is the variables and functions that an expression may use.
type Scope struct {
	env  *cel.Env
	cost uint64
}

// NewScope makes one. An evaluation that costs more than cost fails: it is a loop over a
// loop over an answer, not a comparison.
func NewScope(cost uint64, options ...cel.EnvOption) (*Scope, error) {
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, fmt.Errorf("couldn't start the expression language: %w", err)
	}
	return &Scope{env, cost}, nil
}

// Extend adds variables whose types wrap adds to those there are.
func (s *Scope) Extend(wrap func(types.Provider) types.Provider, options ...cel.EnvOption) (*Scope, error) {
	provider := wrap(s.env.CELTypeProvider())
	env, err := s.env.Extend(append([]cel.EnvOption{cel.CustomTypeProvider(provider)}, options...)...)
	if err != nil {
		return nil, fmt.Errorf("couldn't start the expression language: %w", err)
	}
	return &Scope{env, s.cost}, nil
}

// Expr is a compiled expression. Safe for concurrent use.
type Expr struct {
	program cel.Program
	checked *celast.AST
}

// Compile reads and type-checks an expression that gives a want; nil where there is none
// or it has a mistake.
func (s *Scope) Compile(r *read.Reader, n ast.Node, path string, want *cel.Type) *Expr {
	source, ok := r.Text(n, path)
	if !ok {
		return nil
	}
	// Texts in it are compared with texts in NFC.
	checked, issues := s.env.Compile(norm.NFC.String(source))
	if issues.Err() != nil {
		for _, e := range issues.Errors() {
			r.Mistake(n, path, "at character %d of the expression: %s", e.Location.Column()+1, e.Message)
		}
		return nil
	}
	if out := checked.OutputType(); !want.IsAssignableType(out) && !out.IsExactType(cel.DynType) {
		r.Mistake(n, path, "must give %s, not %s", nameOf(want), out)
		return nil
	}
	e := &Expr{checked: checked.NativeRep()}
	if e.floats() {
		r.Mistake(n, path, "must not use floats (1.5, double()): they are not exact. Compare amounts with same_amount, other numbers as text")
		return nil
	}
	if err := e.prepare(s, checked); err != nil {
		r.Mistake(n, path, "couldn't prepare the expression: %s", err)
		return nil
	}
	return e
}

func (e *Expr) prepare(s *Scope, checked *cel.Ast) (err error) {
	e.program, err = s.env.Program(checked, cel.CostLimit(s.cost), cel.InterruptCheckFrequency(1000))
	return err
}

// Part compiles what is a part of a compiled expression of the scope; nil where it makes
// no sense by itself.
func (s *Scope) Part(source string) *Expr {
	checked, issues := s.env.Compile(source)
	if issues.Err() != nil {
		return nil
	}
	e := &Expr{checked: checked.NativeRep()}
	if e.prepare(s, checked) != nil {
		return nil
	}
	return e
}

func nameOf(t *cel.Type) string {
	switch t {
	case Bool:
		return "true or false"
	case Text:
		return "text"
	case Time:
		return "a time"
	case List:
		return "a list"
	}
	return t.String()
}

// ErrFailed is returned for an expression that gave no value: a member that is not there,
// kinds that cannot be compared, too much work.
var ErrFailed = errors.New("the expression failed")

// Eval runs the expression. The error is [ErrFailed], or the context's; it never holds a
// value of the variables.
func (e *Expr) Eval(ctx context.Context, vars map[string]any) (ref.Val, error) {
	out, _, err := e.program.ContextEval(ctx, vars)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil && !types.IsUnknownOrError(out):
		return out, nil
	case err != nil && strings.HasPrefix(err.Error(), "no such key"):
		return nil, fmt.Errorf("%w: it names a member that is not there", ErrFailed)
	case err != nil && strings.Contains(err.Error(), "cost limit"):
		return nil, fmt.Errorf("%w: it is too much work", ErrFailed)
	case err != nil && strings.HasPrefix(err.Error(), "no such overload"):
		return nil, fmt.Errorf("%w: it compares or calls what does not go together", ErrFailed)
	}
	return nil, ErrFailed
}

// True evaluates to a boolean; anything else is [ErrFailed].
func (e *Expr) True(ctx context.Context, vars map[string]any) (bool, error) {
	out, err := e.Eval(ctx, vars)
	if err != nil {
		return false, err
	}
	b, ok := out.(types.Bool)
	if !ok {
		return false, fmt.Errorf("%w: it gave neither true nor false", ErrFailed)
	}
	return bool(b), nil
}
