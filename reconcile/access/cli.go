package access

import (
	"context"
	"strconv"

	"quittance/ledger"
	store "quittance/ledger/access"
	"quittance/ledger/audit"
)

// What the command line does: it has the database, and so needs nobody's role. It
// leaves the same trail as the pages: whoever can make a second person in a shell is
// seen to have made one.

// fromShell records an act of the command line, in its transaction.
func fromShell(ctx context.Context, tx *ledger.Tx, action, subject, note string) error {
	r := MadeBy{}.row(action, subject)
	r.Note = note
	return audit.Add(ctx, tx, r)
}

// Tokens lists every token, newest first, never their secrets.
func (s *Service) Tokens(ctx context.Context) ([]store.Token, error) { return store.Tokens(ctx, s.db) }

// RevokeToken ends a token; false when there is none that is live. Servers follow
// within [trust].
func (s *Service) RevokeToken(ctx context.Context, id int64) (ok bool, err error) {
	err = s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		if ok, err = store.RevokeToken(ctx, tx, id); err != nil || !ok {
			return err
		}
		return fromShell(ctx, tx, "token.revoke", "token "+strconv.FormatInt(id, 10), "")
	})
	return ok, err
}

// People lists everybody, oldest first.
func (s *Service) People(ctx context.Context) ([]store.Person, error) { return store.People(ctx, s.db) }

// DisablePerson ends somebody's access, tokens included; false when there is nobody
// active of that number.
func (s *Service) DisablePerson(ctx context.Context, id int64) (ok bool, err error) {
	err = s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		if ok, err = store.DisablePerson(ctx, tx, id); err != nil || !ok {
			return err
		}
		return fromShell(ctx, tx, "person.disable", "person "+strconv.FormatInt(id, 10), "")
	})
	return ok, err
}
