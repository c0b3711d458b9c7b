// Package access knows who may do what: tokens of accounts and of people, and
// the roles of people.
package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"quittance/ledger"
	store "quittance/ledger/access"
	"quittance/ledger/audit"
)

// ErrUnknown answers every token that does not open anything: never issued,
// expired, revoked, or of a disabled person. Which one is not told.
var ErrUnknown = errors.New("the token is not known, has expired, or was revoked")

// Roles are what a person may be, several at once.
var Roles = []string{"viewer", "operator", "approver", "finance", "admin", "auditor"}

// Deciders are the roles that may change what an effect is held for.
var Deciders = []string{"operator", "approver", "admin"}

// Identity is who stands behind a bearer token: exactly one field is set.
type Identity struct {
	Account *Account
	Person  *Person
}

// Account owns agent tokens.
type Account struct {
	ID   int64
	Name string
}

// Person reads and decides.
type Person struct {
	ID    int64
	Name  string
	Roles []string
}

// Is tells whether the person has one of the roles.
func (p *Person) Is(roles ...string) bool {
	return p != nil && slices.ContainsFunc(roles, func(r string) bool { return slices.Contains(p.Roles, r) })
}

// trust is how long an answer about an agent's token is used again: a revoked one opens
// nothing after that, on any server. About people's tokens every call asks: there are few,
// and somebody who was disabled must not decide one more payment.
const trust = 2 * time.Second

// cacheLimit bounds the answers kept; only tokens that exist are kept.
const cacheLimit = 10_000

// Service answers for tokens. Safe for concurrent use.
type Service struct {
	db *ledger.DB

	mu    sync.Mutex
	known map[[32]byte]answer
}

type answer struct {
	who   Identity
	until time.Time
}

// New makes a service on a database.
func New(db *ledger.DB) *Service { return &Service{db: db, known: map[[32]byte]answer{}} }

// Authenticate finds who a bearer token belongs to; [ErrUnknown] when nobody.
func (s *Service) Authenticate(ctx context.Context, bearer string) (Identity, error) {
	if bearer == "" || len(bearer) > 512 {
		return Identity{}, ErrUnknown
	}
	hash := sha256.Sum256([]byte(bearer))
	now := time.Now()
	s.mu.Lock()
	a, ok := s.known[hash]
	s.mu.Unlock()
	if ok && now.Before(a.until) {
		return a.who, nil
	}
	o, err := store.OwnerOf(ctx, s.db, hash[:])
	if errors.Is(err, ledger.ErrNotFound) {
		s.forget(hash)
		return Identity{}, ErrUnknown
	}
	if err != nil {
		return Identity{}, fmt.Errorf("couldn't look up a token: %w", err)
	}
	who, until := Identity{Account: &Account{o.Account, o.Name}}, now.Add(trust)
	if !o.ExpiresAt.IsZero() && o.ExpiresAt.Before(until) {
		until = o.ExpiresAt.Time
	}
	if o.Account == 0 {
		who, until = Identity{Person: &Person{o.Person, o.Name, o.Roles}}, time.Time{}
	}
	s.mu.Lock()
	if len(s.known) >= cacheLimit {
		clear(s.known)
	}
	s.known[hash] = answer{who, until}
	s.mu.Unlock()
	return who, nil
}

// Known tells that a token opened something when it was last looked up here: it is no guess.
func (s *Service) Known(bearer string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.known[sha256.Sum256([]byte(bearer))]
	return ok
}

func (s *Service) forget(hash [32]byte) {
	s.mu.Lock()
	delete(s.known, hash)
	s.mu.Unlock()
}

// NewToken makes a token: 256 random bits, shown once.
func NewToken(prefix string) string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return prefix + base64.RawURLEncoding.EncodeToString(b)
}

// Prefixes of tokens, so that a leaked one is recognised for what it is.
const (
	AgentPrefix  = "qa_"
	PersonPrefix = "qp_"
)

// minToken is the least a token given from outside must have, in characters.
const minToken = 16

// addToken stores a token of an account, or of a person when the account is "", with
// its line in the audit trail. An account is made when it is new.
func (s *Service) addToken(ctx context.Context, by MadeBy, account string, person int64, name, token string, life time.Duration) error {
	if len(token) < minToken || len(token) > 512 {
		return fmt.Errorf("a token has %d to 512 characters", minToken)
	}
	hash := sha256.Sum256([]byte(token))
	return s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		var owner int64
		var err error
		if account != "" {
			if owner, err = store.Account(ctx, tx, account); err != nil {
				return err
			}
		}
		var expires time.Time
		if life > 0 {
			now, err := tx.Now(ctx)
			if err != nil {
				return err
			}
			expires = now.Add(life)
		}
		err = store.AddToken(ctx, tx, hash[:], token[:6]+"…", name, owner, person, expires)
		switch ledger.Constraint(err) {
		case "tokens_hash_key":
			return errors.New("this token exists already")
		case "tokens_person_id_fkey":
			return fmt.Errorf("there is no person %d", person)
		}
		if err != nil {
			return err
		}
		return audit.Add(ctx, tx, by.tokenRow("token.add", owner, person, name))
	})
}

// revoke ends a live token, of one person or, for person 0, whoever's; [ErrChanged]
// when there is none.
func (s *Service) revoke(ctx context.Context, by MadeBy, person, id int64) error {
	err := s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		t, err := store.RevokeToken(ctx, tx, person, id)
		if errors.Is(err, ledger.ErrNotFound) {
			return ErrChanged
		}
		if err != nil {
			return err
		}
		return audit.Add(ctx, tx, by.tokenRow("token.revoke", t.Account, t.Person, t.Name))
	})
	s.forgetAll()
	return err
}

// forgetAll lets this server ask again about every token.
func (s *Service) forgetAll() {
	s.mu.Lock()
	clear(s.known)
	s.mu.Unlock()
}

// addPerson adds somebody with roles, with their line in the audit trail.
func (s *Service) addPerson(ctx context.Context, by MadeBy, name, email string, roles []string) (id int64, err error) {
	name, email = strings.TrimSpace(name), strings.ToLower(strings.TrimSpace(email)) // as they sign in
	if name == "" || len(name) > 1024 {
		return 0, errors.New("a person's name has 1 to 1,024 bytes")
	}
	if err := checkRoles(roles); err != nil {
		return 0, err
	}
	err = s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		if id, err = store.AddPerson(ctx, tx, name, email, roles); err != nil {
			return err
		}
		r := by.Row("person.add", subjectOf(id))
		r.After = quoted(map[string]any{"name": name, "email": email, "roles": roles})
		return audit.Add(ctx, tx, r)
	})
	if ledger.Constraint(err) == "people_email_key" {
		return 0, errors.New("somebody has this e-mail address already")
	}
	return id, err
}

func checkRoles(roles []string) error {
	for _, r := range roles {
		if !slices.Contains(Roles, r) {
			return fmt.Errorf("%q is no role: there are %s", r, strings.Join(Roles, ", "))
		}
	}
	return nil
}

// Bootstrap gives the tokens of an empty installation: the first person's, with all
// roles, and the first account's. It does nothing when somebody has access already,
// or when both tokens are "".
func (s *Service) Bootstrap(ctx context.Context, admin, agent string) error {
	empty, err := store.Empty(ctx, s.db)
	if err != nil || !empty {
		return err
	}
	if admin != "" {
		id, err := s.AddPerson(ctx, "Admin", "", Roles)
		if err != nil {
			return err
		}
		if err := s.AddPersonToken(ctx, id, "bootstrap", admin, 0); err != nil {
			return fmt.Errorf("couldn't use the bootstrap admin token: %w", err)
		}
	}
	if agent != "" {
		if err := s.AddAgentToken(ctx, "default", "bootstrap", agent, 0); err != nil {
			return fmt.Errorf("couldn't use the bootstrap agent token: %w", err)
		}
	}
	return nil
}
