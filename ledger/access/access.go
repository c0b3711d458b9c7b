// Package access holds the statements about accounts, people and tokens.
package access

import (
	"context"
	"fmt"
	"time"

	"quittance/ledger"

	"github.com/lib/pq"
)

// Owner is who a live token belongs to: an account, or a person with roles.
type Owner struct {
	Token     int64          `db:"token"`
	Account   int64          `db:"account_id"`
	Name      string         `db:"name"`
	Person    int64          `db:"person_id"`
	Roles     pq.StringArray `db:"roles"`
	ExpiresAt ledger.Time    `db:"expires_at"`
}

// OwnerOf finds the owner of a token that is neither expired nor revoked, nor of a
// disabled person; [ledger.ErrNotFound] otherwise.
func OwnerOf(ctx context.Context, r ledger.Reader, hash []byte) (*Owner, error) {
	var o Owner
	err := r.Get(ctx, &o, `
		SELECT t.id AS token, COALESCE(t.account_id, 0) AS account_id, COALESCE(t.person_id, 0) AS person_id,
			COALESCE(a.name, p.name) AS name, COALESCE(p.roles, '{}') AS roles, t.expires_at
		FROM tokens t LEFT JOIN accounts a ON a.id = t.account_id LEFT JOIN people p ON p.id = t.person_id
		WHERE t.hash = $1 AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > clock_timestamp())
		AND p.disabled_at IS NULL`, hash)
	if err != nil {
		return nil, err
	}
	return &o, nil
}

// Token is a token as it is listed: never its secret.
type Token struct {
	ID        int64       `db:"id"`
	Hint      string      `db:"hint"`
	Name      string      `db:"name"`
	Account   string      `db:"account"`
	Person    string      `db:"person"`
	CreatedAt ledger.Time `db:"created_at"`
	ExpiresAt ledger.Time `db:"expires_at"`
	RevokedAt ledger.Time `db:"revoked_at"`
}

// Tokens lists every token, newest first.
func Tokens(ctx context.Context, r ledger.Reader) ([]Token, error) {
	var rows []Token
	err := r.Select(ctx, &rows, `
		SELECT t.id, t.hint, t.name, COALESCE(a.name, '') AS account, COALESCE(p.name, '') AS person, t.created_at,
			t.expires_at, t.revoked_at
		FROM tokens t LEFT JOIN accounts a ON a.id = t.account_id LEFT JOIN people p ON p.id = t.person_id
		ORDER BY t.id DESC`)
	if err != nil {
		return nil, fmt.Errorf("couldn't list tokens: %w", err)
	}
	return rows, nil
}

// AddToken stores a token's hash for an account or a person; the other is 0.
func AddToken(ctx context.Context, tx *ledger.Tx, hash []byte, hint, name string, account, person int64, expires time.Time) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO tokens (hash, hint, name, account_id, person_id, expires_at)
		VALUES ($1, $2, $3, NULLIF($4::bigint, 0), NULLIF($5::bigint, 0), $6)`,
		hash, hint, name, account, person, ledger.Time{Time: expires})
	if err != nil {
		return fmt.Errorf("couldn't store a token: %w", err)
	}
	return nil
}

// Revoked is a token that has just been ended, and whose it was.
type Revoked struct {
	Name    string `db:"name"`
	Account int64  `db:"account_id"`
	Person  int64  `db:"person_id"`
}

// RevokeToken ends a live token of one person, or of anybody when person is 0;
// [ledger.ErrNotFound] when there is none.
func RevokeToken(ctx context.Context, tx *ledger.Tx, person, id int64) (t Revoked, err error) {
	err = tx.Get(ctx, &t, `
		UPDATE tokens SET revoked_at = clock_timestamp()
		WHERE id = $1 AND ($2::bigint = 0 OR person_id = $2) AND revoked_at IS NULL
		RETURNING name, COALESCE(account_id, 0) AS account_id, COALESCE(person_id, 0) AS person_id`, id, person)
	return t, err
}

// FindAccount is the account of a name; [ledger.ErrNotFound] when there is none.
func FindAccount(ctx context.Context, r ledger.Reader, name string) (id int64, err error) {
	err = r.Get(ctx, &id, `SELECT id FROM accounts WHERE name = $1`, name)
	return id, err
}

// Account finds an account by name, making it when it is new.
func Account(ctx context.Context, tx *ledger.Tx, name string) (id int64, err error) {
	if _, err = tx.Exec(ctx, `INSERT INTO accounts (name) VALUES ($1) ON CONFLICT (name) DO NOTHING`, name); err == nil {
		err = tx.Get(ctx, &id, `SELECT id FROM accounts WHERE name = $1`, name)
	}
	if err != nil {
		return 0, fmt.Errorf("couldn't find the account: %w", err)
	}
	return id, nil
}

// Person is somebody who may read or decide.
type Person struct {
	ID         int64          `db:"id"`
	Name       string         `db:"name"`
	Email      string         `db:"email"`
	Roles      pq.StringArray `db:"roles"`
	CreatedAt  ledger.Time    `db:"created_at"`
	DisabledAt ledger.Time    `db:"disabled_at"`
}

// People lists everyone, oldest first.
func People(ctx context.Context, r ledger.Reader) ([]Person, error) {
	var rows []Person
	err := r.Select(ctx, &rows, `
		SELECT id, name, COALESCE(email, '') AS email, roles, created_at, disabled_at FROM people ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("couldn't list people: %w", err)
	}
	return rows, nil
}

// AddPerson adds somebody; email may be "".
func AddPerson(ctx context.Context, tx *ledger.Tx, name, email string, roles []string) (id int64, err error) {
	err = tx.Get(ctx, &id, `INSERT INTO people (name, email, roles) VALUES ($1, NULLIF($2, ''), $3) RETURNING id`,
		name, email, pq.Array(roles))
	if err != nil {
		return 0, fmt.Errorf("couldn't add a person: %w", err)
	}
	return id, nil
}

// DisablePerson ends somebody's access, and their tokens for good; false when there is nobody.
func DisablePerson(ctx context.Context, tx *ledger.Tx, id int64) (bool, error) {
	n, err := tx.Exec(ctx, `UPDATE people SET disabled_at = clock_timestamp() WHERE id = $1 AND disabled_at IS NULL`, id)
	if err == nil {
		_, err = tx.Exec(ctx, `UPDATE tokens SET revoked_at = clock_timestamp() WHERE person_id = $1 AND revoked_at IS NULL`, id)
	}
	if err != nil {
		return false, fmt.Errorf("couldn't disable a person: %w", err)
	}
	return n == 1, nil
}

// Empty tells whether nobody and nothing has access yet.
func Empty(ctx context.Context, r ledger.Reader) (bool, error) {
	var empty bool
	err := r.Get(ctx, &empty, `SELECT NOT EXISTS (SELECT 1 FROM tokens) AND NOT EXISTS (SELECT 1 FROM people)`)
	return empty, err
}
