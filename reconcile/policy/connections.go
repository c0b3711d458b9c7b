package policy

import (
	"github.com/goccy/go-yaml/ast"

	"quittance/ledger/outside"
	"quittance/reconcile/lookup/block"
	"quittance/reconcile/lookup/secret"
	"quittance/reconcile/policy/read"
)

// connections are databases of the team's own that look-ups may read, by name.
func (r *reader) connections(n ast.Node, path string) map[string]block.Connection {
	list := map[string]block.Connection{}
	for _, e := range r.Entries(n, path) {
		at := read.Join(path, e.Name)
		before := r.Count()
		dsn := secret.Read(r.Reader, e.Value, at, secret.NewSet())
		if !dsn.Secret() && r.Count() == before {
			r.Mistake(e.Value, at, "must be ${env:NAME}, which holds a postgres:// URL")
		}
		if r.Stored || r.Count() > before {
			list[e.Name] = nowhere // so that what names it is no further mistake
			continue
		}
		db, err := outside.Open(dsn.Reveal())
		if err != nil {
			r.Mistake(e.Value, at, "the environment variable's value %s", err)
			db = nowhere
		}
		list[e.Name] = db
	}
	return list
}

var nowhere = &outside.DB{}
