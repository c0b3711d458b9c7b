package access

import (
	"context"
	"errors"
	"strings"
	"time"

	store "quittance/ledger/access"
)

// What the command line does: it has the database, and so needs nobody's role. It
// leaves the same trail as the pages: whoever can make a second person in a shell is
// seen to have made one.

// AddAgentToken stores a token for an account, making the account when it is new.
func (s *Service) AddAgentToken(ctx context.Context, account, name, token string, life time.Duration) error {
	if strings.TrimSpace(account) == "" || len(account) > 256 {
		return errors.New("an account's name has 1 to 256 bytes")
	}
	return s.addToken(ctx, MadeBy{}, account, 0, name, token, life)
}

// AddPersonToken stores a token for a person.
func (s *Service) AddPersonToken(ctx context.Context, person int64, name, token string, life time.Duration) error {
	return s.addToken(ctx, MadeBy{}, "", person, name, token, life)
}

// Tokens lists every token, newest first, never their secrets.
func (s *Service) Tokens(ctx context.Context) ([]store.Token, error) { return store.Tokens(ctx, s.db) }

// RevokeToken ends a token; false when there is none that is live. Servers follow
// within [trust].
func (s *Service) RevokeToken(ctx context.Context, id int64) (bool, error) {
	return changed(s.revoke(ctx, MadeBy{}, 0, id))
}

// AddPerson adds somebody with roles and returns their id.
func (s *Service) AddPerson(ctx context.Context, name, email string, roles []string) (int64, error) {
	return s.addPerson(ctx, MadeBy{}, name, email, roles)
}

// People lists everybody, oldest first.
func (s *Service) People(ctx context.Context) ([]store.Person, error) { return store.People(ctx, s.db) }

// DisablePerson ends somebody's access, tokens included; false when there is nobody
// active of that number.
func (s *Service) DisablePerson(ctx context.Context, id int64) (bool, error) {
	return changed(s.Disable(ctx, MadeBy{}, id))
}

// changed tells a change that found nothing to change from one that failed.
func changed(err error) (bool, error) {
	if errors.Is(err, ErrChanged) {
		return false, nil
	}
	return err == nil, err
}
