package rules

import (
	"github.com/goccy/go-yaml/ast"
	"github.com/google/cel-go/cel"

	"quittance/reconcile/lookup"
	"quittance/reconcile/policy/expr"
	"quittance/reconcile/policy/read"
)

// Rules are the expressions of one look-up. Each is nil where it is not declared.
type Rules struct {
	found, possible, notFound, next, asOf, worldSeen              *expr.Expr // of an answer
	match, final, reference, result, ours, never, reversed, state *expr.Expr // of a hit

	shown seenMoney

	checkResult func([]byte) error
}

// Fields are the names of all expressions, in the order of the documentation.
var Fields = []string{"found", "match", "final", "reference", "result", "possible", "ours", "never", "reversed", "state",
	"not_found", "next", "as_of", "world_seen"}

// Tool is what the rules must agree with of the tool that they are for.
type Tool struct {
	HasBusinessKey, HasAmount bool
	// Volatile are the arguments that differ from try to try: what a record says of them is
	// said of one try only.
	Volatile []string
	// CheckResult checks a result against the tool's example.
	CheckResult func([]byte) error
	// Fill sets business key and amount of a question as the tool reads them from its
	// arguments. The error says what these arguments lack.
	Fill func(q *lookup.Question) error
}

// Read reads the expressions among the fields of a look-up. block is where a missing one
// is reported.
func Read(r *read.Reader, block ast.Node, path string, f map[string]ast.Node, tool Tool) *Rules {
	answer, err := answerScope()
	if err != nil {
		r.Mistake(block, path, "%s", err)
		return nil
	}
	hit, err := hitScope()
	if err != nil {
		r.Mistake(block, path, "%s", err)
		return nil
	}
	before := r.Count()
	of := func(s *expr.Scope, name string, want *cel.Type) *expr.Expr {
		e := s.Compile(r, f[name], path+"."+name, want)
		if e != nil {
			checkEffect(r, f[name], path+"."+name, e, tool)
		}
		return e
	}
	rules := &Rules{
		found: of(answer, "found", expr.List), possible: of(answer, "possible", expr.List),
		asOf: of(answer, "as_of", expr.Time), worldSeen: of(answer, "world_seen", expr.Text),
		notFound: of(answer, "not_found", expr.Bool), next: of(answer, "next", expr.Any),
		match: of(hit, "match", expr.Bool), final: of(hit, "final", expr.Bool),
		reference: of(hit, "reference", expr.Any), result: of(hit, "result", expr.Any),
		ours: of(hit, "ours", expr.Bool), never: of(hit, "never", expr.Bool),
		reversed: of(hit, "reversed", expr.Bool), state: of(hit, "state", expr.Any),
		checkResult: tool.CheckResult,
	}
	required := map[string]string{
		"found": "the list of hits in an answer",
		"match": "whether a hit's amount, currency and recipient are the effect's", "final": "whether a hit can still change",
		"reference": "the downstream's name for a hit", "result": "what is replayed to the agent",
	}
	for _, name := range Fields {
		if why, must := required[name]; must && f[name] == nil {
			r.Mistake(block, path, "%s is missing: %s", name, why)
		}
	}
	if r.Count() == before {
		rules.agree(r, f, path, tool)
		rules.shown = moneyIn(hit, rules.match)
	}
	return rules
}

// checkEffect refuses what an effect of this tool never has.
func checkEffect(r *read.Reader, n ast.Node, path string, e *expr.Expr, tool Tool) {
	if !tool.HasBusinessKey && e.Uses("effect.business_key") {
		r.Mistake(n, path, "effect.business_key is never there: the tool declares no business_key")
	}
	if !tool.HasAmount && e.Uses("effect.amount", "effect.amount_minor", "effect.currency") {
		r.Mistake(n, path, "the effect has no amount and no currency: the tool declares no amount")
	}
	if e.ComparesInPart("effect.business_key", "effect.vendor_key", "effect.reference") {
		r.Mistake(n, path, "compares a key in part: 27 is also in 1927. Compare whole keys with ==, and name what may be ours in possible")
	}
}

// agree refuses rules under which something could pass for a proof that is none.
func (x *Rules) agree(r *read.Reader, f map[string]ast.Node, path string, tool Tool) {
	keys := []string{"effect.business_key", "effect.vendor_key", "effect.reference", "effect.arguments"}
	named := x.match.Uses(keys...) || x.found.Uses(keys...)
	if !named {
		r.Mistake(f["match"], path+".match", "neither found nor match compares a hit with the effect: a search that finds something similar would be a proof")
	}
	if tool.HasAmount && !x.match.Calls(sameAmountName) {
		r.Mistake(f["match"], path+".match", "the tool declares an amount, and match does not compare it with same_amount")
	}
	if tool.HasAmount && !x.match.Uses("effect.currency") {
		r.Mistake(f["match"], path+".match", "the tool declares an amount, and match does not compare effect.currency")
	}
	if x.notFound != nil && !x.notFound.Uses("body") {
		r.Mistake(f["not_found"], path+".not_found", "names nothing of the body: a status alone also comes from a proxy or a wrong address")
	}
	if x.never != nil && x.ours == nil {
		r.Mistake(f["never"], path+".never", "needs ours: a cancelled record proves something only where it carries our own key")
	}
}
