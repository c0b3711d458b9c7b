package rules

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"quittance/ledger/money"
	"quittance/reconcile/canon"
	"quittance/reconcile/lookup"
	"quittance/reconcile/policy/expr"
)

// Answer is one answer of a source.
type Answer struct {
	Status int
	Body   *canon.Value // nil where it was not JSON
}

// Asker evaluates the rules for one question.
type Asker struct {
	rules  *Rules
	effect map[string]any
	amount *money.Amount
}

// For is the rules with the effect in them.
func (x *Rules) For(q lookup.Question) Asker {
	if q.KeyOnly { // there is no call to be compared with
		x = &Rules{found: x.found, possible: x.possible, notFound: x.notFound, next: x.next, asOf: x.asOf, worldSeen: x.worldSeen,
			final: x.final, reference: x.reference, state: x.state, shown: x.shown}
	}
	return Asker{x, effectVariable(q), q.Amount}
}

// ForCanary is what recognises a canary, asked for with [lookup.Question.As]: the rules that
// find a record.
func (x *Rules) ForCanary(q lookup.Question) Asker {
	return Asker{&Rules{found: x.found, notFound: x.notFound, next: x.next, worldSeen: x.worldSeen}, effectVariable(q), nil}
}

// FindsByArgument says whether records are found by arguments alone, which a canary has not.
func (x *Rules) FindsByArgument() bool {
	return x != nil && x.found != nil && x.found.Uses("effect.arguments", "effect.amount", "effect.amount_minor", "effect.currency")
}

// failed says which rule did not fit.
func failed(name string, err error) error { return fmt.Errorf("%s: %w", name, err) }

var errKind = errors.New("it gave a value of the wrong kind")

func (a Asker) answer(in Answer) map[string]any {
	return map[string]any{"effect": a.effect, "status": int64(in.Status), "body": expr.Value(in.Body)}
}

// NotFound says whether the answer is the declared "there is none". What is not JSON never
// is, and neither is a status that speaks of the request, the credentials or the server.
func (a Asker) NotFound(ctx context.Context, in Answer) bool {
	if a.rules.notFound == nil || in.Body == nil {
		return false
	}
	switch {
	case in.Status >= 300 && in.Status < 400, in.Status >= 500,
		in.Status == 401, in.Status == 403, in.Status == 407, in.Status == 408, in.Status == 425, in.Status == 429:
		return false
	}
	yes, err := a.rules.notFound.True(ctx, a.answer(in))
	return err == nil && yes
}

// See adds what an answer shows to s.
func (a Asker) See(ctx context.Context, in Answer, s *lookup.Seen) error {
	vars := a.answer(in)
	if x := a.rules.worldSeen; x != nil {
		out, err := x.Eval(ctx, vars)
		if err != nil {
			return failed("world_seen", err)
		}
		world, ok := out.(types.String)
		if !ok || world == "" {
			return failed("world_seen", errKind)
		}
		if s.World != "" && s.World != string(world) {
			return failed("world_seen", errors.New("two pages came from two worlds"))
		}
		s.World = string(world)
	}
	if x := a.rules.asOf; x != nil {
		out, err := x.Eval(ctx, vars)
		if err != nil {
			return failed("as_of", err)
		}
		at, ok := out.(types.Timestamp)
		if !ok {
			return failed("as_of", errKind)
		}
		if s.AsOf.IsZero() || at.Time.Before(s.AsOf) {
			s.AsOf = at.Time
		}
	}
	if err := a.list(ctx, "found", a.rules.found, vars, s, false); err != nil {
		return err
	}
	return a.list(ctx, "possible", a.rules.possible, vars, s, true)
}

// Document is See for a source whose whole answer is one JSON document.
// The look is complete where the rules fit it.
func (a Asker) Document(ctx context.Context, raw []byte, s *lookup.Seen) {
	s.Body(raw)
	body, err := canon.Parse(raw)
	if err != nil {
		s.Problem, s.Detail = lookup.Unreadable, err.Error()
		return
	}
	if err := a.See(ctx, Answer{Status: 200, Body: body}, s); err != nil {
		s.Problem, s.Detail = lookup.RuleFailed, err.Error()
		return
	}
	s.Complete = true
}

func (a Asker) list(ctx context.Context, name string, x *expr.Expr, vars map[string]any, s *lookup.Seen, possible bool) error {
	if x == nil {
		return nil
	}
	out, err := x.Eval(ctx, vars)
	if err != nil {
		return failed(name, err)
	}
	list, ok := out.(traits.Lister)
	if !ok {
		return failed(name, errKind)
	}
	for it := list.Iterator(); it.HasNext() == types.True; {
		record := it.Next()
		if possible {
			h := lookup.Hit{Possible: true, Record: shown(record)}
			h.Reference, _ = a.reference(ctx, record, vars)
			a.rules.shown.read(ctx, map[string]any{"hit": record, "effect": vars["effect"], "status": vars["status"], "body": vars["body"]}, a.amount, &h)
			s.Hits = append(s.Hits, h)
			continue
		}
		h, err := a.hit(ctx, record, vars)
		if err != nil {
			return err
		}
		s.Hits = append(s.Hits, h)
	}
	return nil
}

func (a Asker) hit(ctx context.Context, record ref.Val, answer map[string]any) (h lookup.Hit, err error) {
	vars := map[string]any{"hit": record, "effect": answer["effect"], "status": answer["status"], "body": answer["body"]}
	for _, one := range []struct {
		name string
		rule *expr.Expr
		to   *bool
	}{
		{"never", a.rules.never, &h.Never}, {"ours", a.rules.ours, &h.Ours}, {"reversed", a.rules.reversed, &h.Reversed},
		{"match", a.rules.match, &h.Match}, {"final", a.rules.final, &h.Final},
	} {
		if one.rule == nil {
			continue
		}
		if *one.to, err = one.rule.True(ctx, vars); err != nil {
			return h, failed(one.name, err)
		}
	}
	if h.Reference, err = a.reference(ctx, record, vars); err != nil {
		return h, err
	}
	if a.rules.state != nil {
		if out, err := a.rules.state.Eval(ctx, vars); err == nil {
			h.State = plain(out)
		}
	}
	h.Record = shown(record)
	a.rules.shown.read(ctx, vars, a.amount, &h)
	if h.Never || a.rules.result == nil {
		return h, nil
	}
	result, err := a.result(ctx, vars)
	if err != nil && h.Match && h.Final {
		return h, failed("result", err)
	}
	if err == nil {
		h.Result = result // of one that proves nothing it is what a person may give
	}
	return h, nil
}

func (a Asker) result(ctx context.Context, vars map[string]any) ([]byte, error) {
	out, err := a.rules.result.Eval(ctx, vars)
	if err != nil {
		return nil, err
	}
	result, err := expr.AppendJSON(nil, out)
	if err == nil && a.rules.checkResult != nil {
		if err = a.rules.checkResult(result); err != nil {
			err = fmt.Errorf("it does not fit result_example: %w", err)
		}
	}
	return result, err
}

// maxReference is what the record stores of a downstream's name; in bytes.
const maxReference = 1024

// reference is a record's name; "" where the rule gives null or nothing.
func (a Asker) reference(ctx context.Context, record ref.Val, answer map[string]any) (string, error) {
	if a.rules.reference == nil {
		return "", nil
	}
	out, err := a.rules.reference.Eval(ctx, map[string]any{
		"hit": record, "effect": answer["effect"], "status": answer["status"], "body": answer["body"]})
	if err != nil {
		return "", failed("reference", err)
	}
	text := plain(out)
	switch out.(type) {
	case types.String, types.Int, types.Uint, types.Null:
	default:
		return "", failed("reference", errKind)
	}
	if len(text) > maxReference || strings.ContainsRune(text, 0) {
		return "", failed("reference", errors.New("it is no name: too long, or with a NUL in it"))
	}
	return text, nil
}

// Next is where the next page is; "" for none. declared is false without the rule.
func (a Asker) Next(ctx context.Context, in Answer) (next string, declared bool, err error) {
	if a.rules.next == nil {
		return "", false, nil
	}
	out, err := a.rules.next.Eval(ctx, a.answer(in))
	if err != nil {
		return "", true, failed("next", err)
	}
	switch out := out.(type) {
	case types.Null:
		return "", true, nil
	case types.String:
		return string(out), true, nil
	}
	return "", true, failed("next", errKind)
}

func plain(v ref.Val) string {
	switch v := v.(type) {
	case types.String:
		return string(v)
	case types.Int, types.Uint, types.Bool:
		return string(v.ConvertToType(types.StringType).(types.String))
	}
	return ""
}

// shown is a record for people.
func shown(record ref.Val) string {
	raw, err := expr.AppendJSON(nil, record)
	if err != nil {
		return ""
	}
	return string(raw)
}
