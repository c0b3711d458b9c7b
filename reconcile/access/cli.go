package access

import (
	"context"

	"quittance/ledger"
	store "quittance/ledger/access"
)

// What the command line does: it has the database, and so needs nobody's role.

// Tokens lists every token, newest first, never their secrets.
func (s *Service) Tokens(ctx context.Context) ([]store.Token, error) { return store.Tokens(ctx, s.db) }

// RevokeToken ends a token; false when there is none that is live. Servers follow
// within [trust].
func (s *Service) RevokeToken(ctx context.Context, id int64) (ok bool, err error) {
	err = s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		ok, err = store.RevokeToken(ctx, tx, id)
		return err
	})
	return ok, err
}

// People lists everybody, oldest first.
func (s *Service) People(ctx context.Context) ([]store.Person, error) { return store.People(ctx, s.db) }

// DisablePerson ends somebody's access, tokens included; false when there is nobody
// active of that number.
func (s *Service) DisablePerson(ctx context.Context, id int64) (ok bool, err error) {
	err = s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		ok, err = store.DisablePerson(ctx, tx, id)
		return err
	})
	return ok, err
}
