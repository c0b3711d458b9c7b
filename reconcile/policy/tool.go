package policy

import (
	"errors"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"quittance/ledger/money"
	"quittance/reconcile/guards"
	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/block"
	"quittance/reconcile/lookup/kinds"
	"quittance/reconcile/lookup/rules"
	"quittance/reconcile/policy/expr"
	"quittance/reconcile/policy/read"
)

// Tool is what is known of one tool.
type Tool struct {
	Name     string
	Declared bool     // false: the file does not name it, all below are defaults
	Volatile []string // dotted paths left out of the key
	Redact   []string // RFC 6901 pointers into arguments, results and errors
	Deadline time.Duration
	// OverdueAfter is when an open question about an effect is marked overdue.
	OverdueAfter time.Duration
	Repeat       Repeat
	OnUnknown    OnUnknown
	VendorKey    *VendorKey // nil where the vendor's own key is not declared
	Cacheable    bool       // a paid read that may be answered again for two minutes

	observe, unguarded bool
	landsWithin        *time.Duration
	summary            *read.Template
	businessKey        *read.Template
	amount             *amountRule
	limits             map[money.Asset]money.Amount // nil: no second person
	example            *example
	refusal            *expr.Expr
	places             []read.Template
	lookup             *lookup.Lookup
}

// Repeat says what becomes of the same call made again in the same run.
type Repeat string

// OnUnknown says what becomes of an effect whose outcome is unknown.
type OnUnknown string

const (
	RepeatHold  Repeat = "hold"  // a person decides
	RepeatAllow Repeat = "allow" // two honest calls

	OnUnknownPause   OnUnknown = "pause"    // evidence or a person decides
	OnUnknownSameKey OnUnknown = "same_key" // sent again with the vendor's key, while that lives
)

// VendorKey is what the vendor documents about its idempotency keys.
type VendorKey struct {
	Life       time.Duration // counted from the first attempt
	ChecksBody bool          // the vendor refuses another body under the same key
}

// Defaults of a tool. The deadline is longer than the time-outs of common HTTP clients.
const (
	defaultDeadline = 180 * time.Second
	defaultOverdue  = time.Hour

	maxToolName = 256
)

func newTool(name string) *Tool {
	return &Tool{
		Name: name, Deadline: defaultDeadline, OverdueAfter: defaultOverdue,
		Repeat: RepeatAllow, OnUnknown: OnUnknownPause,
	}
}

// Guarded is false for a tool without an effect worth guarding (effect: none).
func (t *Tool) Guarded() bool { return !t.unguarded }

// Observe says that begin always proceeds and only a report tells what would have been.
func (t *Tool) Observe() bool { return t.observe }

// LandsWithin is how long a sent request may still land; not declared means for ever.
func (t *Tool) LandsWithin() (d time.Duration, declared bool) {
	if t.landsWithin == nil {
		return 0, false
	}
	return *t.landsWithin, true
}

// Silence is how long after an attempt's deadline its absence says nothing: what was sent may
// still land, and may not be seen at once. What is not declared adds nothing.
func (t *Tool) Silence() time.Duration {
	d, _ := t.LandsWithin()
	if guards.Off(guards.LandsWithin) {
		d = 0
	}
	if t.lookup != nil && t.lookup.Terms.VisibleAfter != nil {
		d += *t.lookup.Terms.VisibleAfter
	}
	return d
}

// HasLookup is false for a tool that is blind.
func (t *Tool) HasLookup() bool { return t.lookup != nil }

// Lookup is how the downstream is asked, nil for a tool that is blind.
func (t *Tool) Lookup() *lookup.Lookup { return t.lookup }

// Keep are the arguments that people must recognise: they are part of the business
// key, the amount or the summary.
func (t *Tool) Keep() (paths []string) {
	for _, tpl := range []*read.Template{t.businessKey, t.summary} {
		if tpl != nil {
			paths = append(paths, tpl.Fields()...)
		}
	}
	if t.amount != nil {
		paths = append(paths, t.amount.value, t.amount.currency)
	}
	return paths
}

// tool reads one entry of the tools section.
func (r *reader) tool(e read.Entry, path string, connections map[string]block.Connection) *Tool {
	t := newTool(e.Name)
	t.Declared = true
	f := r.Fields(e.Value, path, "summary", "business_key", "repeat", "volatile", "amount", "deadline", "lands_within",
		"second_person_above", "result_example", "refusal", "mode", "effect", "on_unknown", "vendor_key",
		"where_to_check", "overdue_after", "redact", "cacheable", "lookup")
	at := func(field string) (ast.Node, string) { return f[field], path + "." + field }

	t.summary = r.Template(at("summary"))
	t.businessKey = r.keyTemplate(at("business_key"))
	if t.businessKey != nil {
		t.Repeat = RepeatHold
	}
	n, p := at("repeat")
	t.Repeat = Repeat(r.Choice(n, p, string(t.Repeat), string(RepeatHold), string(RepeatAllow)))
	n, p = at("volatile")
	t.Volatile = r.Texts(n, p, read.CheckPath)
	t.amount = r.amount(at("amount"))
	n, p = at("deadline")
	t.Deadline = r.Duration(n, p, defaultDeadline, time.Second)
	n, p = at("overdue_after")
	t.OverdueAfter = r.Duration(n, p, defaultOverdue, time.Second)
	if n, p = at("lands_within"); n != nil {
		d := r.Duration(n, p, 0, 0)
		t.landsWithin = &d
	}
	n, p = at("second_person_above")
	t.limits = r.limits(n, p, t.amount, f["amount"] != nil)
	t.example = r.example(at("result_example"))
	t.refusal = r.refusal(at("refusal"))
	n, p = at("mode")
	t.observe = r.Choice(n, p, "enforce", "enforce", "observe") == "observe"
	n, p = at("effect")
	t.unguarded = r.Choice(n, p, "guarded", "guarded", "none") == "none"
	n, p = at("on_unknown")
	t.OnUnknown = OnUnknown(r.Choice(n, p, string(OnUnknownPause), string(OnUnknownPause), string(OnUnknownSameKey)))
	t.VendorKey = r.vendorKey(at("vendor_key"))
	t.places = r.places(at("where_to_check"))
	n, p = at("redact")
	t.Redact = r.Texts(n, p, read.CheckPointer)
	n, p = at("cacheable")
	t.Cacheable = r.Boolean(n, p)
	n, p = at("lookup")
	t.lookup = kinds.Read(r.Reader, n, p, t.asked(), connections)
	r.agree(t, f, path)
	return t
}

func (r *reader) vendorKey(n ast.Node, path string) *VendorKey {
	if n == nil {
		return nil
	}
	f := r.Fields(n, path, "life", "checks_body")
	if f != nil && f["life"] == nil {
		r.Mistake(n, path, "life is missing: how long the vendor remembers a key")
	}
	return &VendorKey{
		Life:       r.Duration(f["life"], path+".life", 0, time.Second),
		ChecksBody: r.Boolean(f["checks_body"], path+".checks_body"),
	}
}

// asked is what a look-up's rules must agree with.
func (t *Tool) asked() rules.Tool {
	return rules.Tool{
		HasBusinessKey: t.businessKey != nil, HasAmount: t.amount != nil, Volatile: t.Volatile, CheckResult: t.CheckResult,
		Fill: func(q *lookup.Question) error {
			key, missing, err := t.BusinessKey(q.Arguments)
			if err == nil && len(missing) > 0 {
				err = errors.New(strings.Join(missing, ", ") + " of the business key is missing")
			}
			if err != nil {
				return err
			}
			amount, reason := t.Amount(q.Arguments)
			if reason != "" {
				return errors.New(reason)
			}
			q.BusinessKey, q.Amount = key, amount
			return nil
		},
	}
}

// agree checks the fields of a tool against each other.
func (r *reader) agree(t *Tool, f map[string]ast.Node, path string) {
	if t.OnUnknown == OnUnknownSameKey {
		for _, needed := range []string{"vendor_key", "lands_within"} {
			if f[needed] == nil {
				r.Mistake(f["on_unknown"], path+".on_unknown", "same_key needs %s: without it nobody can tell that the key still lives", needed)
			}
		}
	}
	var identity []string // what tells two calls apart may not change on every try
	if t.businessKey != nil {
		identity = t.businessKey.Fields()
	}
	if t.amount != nil {
		identity = append(identity, t.amount.value, t.amount.currency)
	}
	for _, field := range identity {
		for _, v := range t.Volatile {
			if read.Covers(v, field) {
				r.Mistake(f["volatile"], path+".volatile", "%s leaves out %s, which the business key or the amount is made of", v, strings.TrimSpace(field))
			}
		}
	}
}
