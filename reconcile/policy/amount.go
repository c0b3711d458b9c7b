package policy

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"quittance/ledger/money"
	"quittance/reconcile/canon"
	"quittance/reconcile/policy/read"
)

// amountRule says where in the arguments the money is.
type amountRule struct {
	value, currency string // paths
	minor           bool   // the value counts the smallest unit
	decimals        *int   // of an asset that is not an ISO currency
}

// Amount reads the money in a call. It is nil with a reason where the tool declares an
// amount that these arguments do not give exactly, and nil without one where the tool
// declares none. The reason names the field and never its content.
func (t *Tool) Amount(args *canon.Value) (amount *money.Amount, reason string) {
	if t.amount == nil {
		return nil, ""
	}
	a, err := t.amount.read(args)
	if err != nil {
		return nil, err.Error()
	}
	return &a, ""
}

func (m *amountRule) read(args *canon.Value) (money.Amount, error) {
	code, ok := args.Lookup(m.currency).Text()
	if !ok {
		return money.Amount{}, errors.New(m.currency + " is not a currency code")
	}
	asset, err := m.asset(code)
	if err != nil {
		return money.Amount{}, errors.New(m.currency + ": " + err.Error())
	}
	v := args.Lookup(m.value)
	text, ok := v.Text()
	if !ok {
		text, ok = v.Number()
	}
	if !ok {
		return money.Amount{}, errors.New(m.value + " is neither text nor a number")
	}
	parse := money.ParseDecimal
	if m.minor {
		parse = money.ParseMinor
	}
	a, err := parse(text, asset)
	if err != nil {
		return money.Amount{}, errors.New(m.value + ": " + err.Error())
	}
	if a.Sign() < 0 {
		return money.Amount{}, errors.New(m.value + " is negative")
	}
	return a, nil
}

func (m *amountRule) asset(code string) (money.Asset, error) {
	if m.decimals == nil {
		return money.Currency(code)
	}
	return money.NewAsset(code, *m.decimals)
}

// NeedsSecondPerson says whether a decision about a call needs two people, given what
// [Tool.Amount] returned for it. Where a limit is declared, money that cannot be read or
// whose currency is not listed counts as above it.
func (t *Tool) NeedsSecondPerson(amount *money.Amount, reason string) bool {
	if t.limits == nil {
		return false
	}
	if amount == nil || reason != "" {
		return true
	}
	limit, listed := t.limits[amount.Asset()]
	if !listed {
		return true
	}
	above, err := amount.Cmp(limit)
	return err != nil || above > 0
}

func (r *reader) amount(n ast.Node, path string) *amountRule {
	if n == nil {
		return nil
	}
	f := r.Fields(n, path, "value", "currency", "unit", "decimals")
	if f == nil {
		return nil
	}
	for _, needed := range []string{"value", "currency", "unit"} {
		if f[needed] == nil {
			r.Mistake(n, path, "%s is missing", needed)
		}
	}
	field := func(name string) string {
		s, ok := r.Text(f[name], path+"."+name)
		if ok && read.CheckPath(s) != nil {
			r.Mistake(f[name], path+"."+name, "%s", read.CheckPath(s))
		}
		return s
	}
	m := &amountRule{value: field("value"), currency: field("currency")}
	m.minor = r.Choice(f["unit"], path+".unit", "minor", "minor", "major") == "minor"
	if f["decimals"] != nil {
		d := r.Whole(f["decimals"], path+".decimals", 0, 0, money.MaxDecimals)
		m.decimals = &d
	}
	return m
}

func (r *reader) limits(n ast.Node, path string, rule *amountRule, hasAmount bool) map[money.Asset]money.Amount {
	if n == nil {
		return nil
	}
	if !hasAmount {
		r.Mistake(n, path, "needs amount: no call's money could be read")
	}
	if rule == nil {
		rule = &amountRule{}
	}
	limits := map[money.Asset]money.Amount{}
	for _, e := range r.Entries(n, path) {
		at := read.Join(path, e.Name)
		asset, err := rule.asset(e.Name)
		if err != nil {
			r.Mistake(e.Key, at, "%s", err)
			continue
		}
		s, ok := r.Spelling(e.Value, at)
		if !ok {
			continue
		}
		limit, err := money.ParseDecimal(s, asset)
		switch {
		case err != nil:
			r.Mistake(e.Value, at, "%s", err)
		case limit.Sign() < 0:
			r.Mistake(e.Value, at, "must not be negative")
		default:
			limits[asset] = limit
		}
	}
	return limits
}

// SecondPersonAbove are the declared limits by asset, sorted by code; none means that
// one person decides.
func (t *Tool) SecondPersonAbove() []money.Amount {
	list := slices.Collect(maps.Values(t.limits))
	slices.SortFunc(list, func(a, b money.Amount) int { return strings.Compare(a.Asset().Code, b.Asset().Code) })
	return list
}
