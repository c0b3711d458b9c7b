package policy

import (
	"maps"

	"github.com/goccy/go-yaml/ast"
)

// accountNames are the accounts of the double entries, with what a journal calls them where
// the policy says nothing.
var accountNames = map[string]string{
	"incoming": "Incoming", "revenue": "Revenue", "held": "Held for orders", "unmatched": "Unmatched", "refund_owed": "Refunds owed",
	"refund_in_transit": "Refunds in transit", "refund_wallet": "Refund wallet", "write_off": "Written off",
}

// Accounts is what the team's books call each account of the journal.
func (p *Policy) Accounts() map[string]string { return p.accounts }

func (r *reader) accounts(n ast.Node, path string) map[string]string {
	list := maps.Clone(accountNames)
	for _, e := range r.Entries(n, path) {
		if _, known := accountNames[e.Name]; !known {
			r.Mistake(e.Key, path, "%q is no account: there are incoming, revenue, held, unmatched, refund_owed, refund_in_transit, refund_wallet and write_off", e.Name)
			continue
		}
		if name, ok := r.Spelling(e.Value, path+"."+e.Name); ok {
			list[e.Name] = name
		}
	}
	return list
}
