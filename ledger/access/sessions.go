package access

import (
	"context"
	"fmt"
	"time"

	"quittance/ledger"

	"github.com/lib/pq"
)

// Session is somebody signed in in a browser.
type Session struct {
	ID        int64          `db:"id"`
	Person    int64          `db:"person_id"`
	Name      string         `db:"name"`
	Email     string         `db:"email"`
	Roles     pq.StringArray `db:"roles"`
	Disabled  bool           `db:"disabled"`
	Zone      string         `db:"zone"`
	BeganAt   time.Time      `db:"began_at"`
	SeenAt    time.Time      `db:"seen_at"`
	ExpiresAt time.Time      `db:"expires_at"`
	EndedAt   ledger.Time    `db:"ended_at"`
	Now       time.Time      `db:"now"`
}

// SessionOf finds a session by the hash of its secret, live or not;
// [ledger.ErrNotFound] when there never was one.
func SessionOf(ctx context.Context, r ledger.Reader, hash []byte) (*Session, error) {
	var s Session
	err := r.Get(ctx, &s, `
		SELECT s.id, s.person_id, p.name, COALESCE(p.email, '') AS email, p.roles, p.disabled_at IS NOT NULL AS disabled,
			s.zone, s.began_at, s.seen_at, s.expires_at, s.ended_at, clock_timestamp() AS now
		FROM sessions s JOIN people p ON p.id = s.person_id WHERE s.hash = $1`, hash)
	if err != nil {
		return nil, err
	}
	return &s, nil
}

// AddSession begins a session.
func AddSession(ctx context.Context, tx *ledger.Tx, hash []byte, person int64, zone string, life time.Duration) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO sessions (hash, person_id, zone, expires_at)
		VALUES ($1, $2, $3, clock_timestamp() + make_interval(secs => $4))`, hash, person, zone, life.Seconds())
	if err != nil {
		return fmt.Errorf("couldn't begin a session: %w", err)
	}
	return nil
}

// SeeSession notes that a session is in use.
func SeeSession(ctx context.Context, tx *ledger.Tx, id int64) error {
	_, err := tx.Exec(ctx, `UPDATE sessions SET seen_at = clock_timestamp() WHERE id = $1 AND ended_at IS NULL`, id)
	return err
}

// SetZone changes the time zone a session reads times in.
func SetZone(ctx context.Context, tx *ledger.Tx, id int64, zone string) error {
	_, err := tx.Exec(ctx, `UPDATE sessions SET zone = $2 WHERE id = $1`, id, zone)
	return err
}

// EndSessions ends sessions of a person: one, or all when id is 0.
func EndSessions(ctx context.Context, tx *ledger.Tx, person, id int64) (int64, error) {
	n, err := tx.Exec(ctx, `
		UPDATE sessions SET ended_at = clock_timestamp()
		WHERE person_id = $1 AND ($2::bigint = 0 OR id = $2) AND ended_at IS NULL`, person, id)
	if err != nil {
		return 0, fmt.Errorf("couldn't end sessions: %w", err)
	}
	return n, nil
}

// UseForm marks a form token as used; false when it was used before.
func UseForm(ctx context.Context, tx *ledger.Tx, session int64, nonce []byte) (bool, error) {
	n, err := tx.Exec(ctx, `INSERT INTO form_tokens (session_id, nonce) VALUES ($1, $2) ON CONFLICT DO NOTHING`, session, nonce)
	if err != nil {
		return false, fmt.Errorf("couldn't use a form token: %w", err)
	}
	return n == 1, nil
}

// PersonByEmail finds somebody with their password hash, "" when none is set;
// [ledger.ErrNotFound].
func PersonByEmail(ctx context.Context, r ledger.Reader, email string) (p Person, hash string, err error) {
	var row struct {
		Person
		Hash string `db:"hash"`
	}
	err = r.Get(ctx, &row, `
		SELECT p.id, p.name, COALESCE(p.email, '') AS email, p.roles, p.created_at, p.disabled_at, COALESCE(w.hash, '') AS hash
		FROM people p LEFT JOIN passwords w ON w.person_id = p.id WHERE p.email = $1`, email)
	return row.Person, row.Hash, err
}

// PersonByID finds somebody; [ledger.ErrNotFound].
func PersonByID(ctx context.Context, r ledger.Reader, id int64) (p Person, err error) {
	err = r.Get(ctx, &p, `
		SELECT id, name, COALESCE(email, '') AS email, roles, created_at, disabled_at FROM people WHERE id = $1`, id)
	return p, err
}

// SetPassword stores a password's hash.
func SetPassword(ctx context.Context, tx *ledger.Tx, person int64, hash string) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO passwords (person_id, hash) VALUES ($1, $2)
		ON CONFLICT (person_id) DO UPDATE SET hash = EXCLUDED.hash, changed_at = clock_timestamp()`, person, hash)
	if err != nil {
		return fmt.Errorf("couldn't store a password: %w", err)
	}
	return nil
}

// SetRoles replaces somebody's roles, guarded by those that were read.
func SetRoles(ctx context.Context, tx *ledger.Tx, person int64, was, roles []string) (bool, error) {
	n, err := tx.Exec(ctx, `
		UPDATE people SET roles = $3 WHERE id = $1 AND roles @> $2 AND roles <@ $2`, person, pq.Array(was), pq.Array(roles))
	if err != nil {
		return false, fmt.Errorf("couldn't set roles: %w", err)
	}
	return n == 1, nil
}

// EnablePerson gives a disabled person their access back, without their tokens.
func EnablePerson(ctx context.Context, tx *ledger.Tx, id int64) (bool, error) {
	n, err := tx.Exec(ctx, `UPDATE people SET disabled_at = NULL WHERE id = $1 AND disabled_at IS NOT NULL`, id)
	if err != nil {
		return false, fmt.Errorf("couldn't enable a person: %w", err)
	}
	return n == 1, nil
}

// Link is a one-time link.
type Link struct {
	Person int64  `db:"person_id"`
	Name   string `db:"name"`
	Email  string `db:"email"`
	Kind   string `db:"kind"`
}

// AddLink stores a link's hash; madeBy 0 is the command line.
func AddLink(ctx context.Context, tx *ledger.Tx, hash []byte, person int64, kind string, madeBy int64, life time.Duration) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO links (hash, person_id, kind, made_by, expires_at)
		VALUES ($1, $2, $3, NULLIF($4::bigint, 0), clock_timestamp() + make_interval(secs => $5))`,
		hash, person, kind, madeBy, life.Seconds())
	if err != nil {
		return fmt.Errorf("couldn't make a link: %w", err)
	}
	return nil
}

const liveLink = `l.hash = $1 AND l.used_at IS NULL AND l.expires_at > clock_timestamp() AND p.disabled_at IS NULL`

// LinkOf finds a link that can still be used; [ledger.ErrNotFound].
func LinkOf(ctx context.Context, r ledger.Reader, hash []byte) (l Link, err error) {
	err = r.Get(ctx, &l, `
		SELECT l.person_id, p.name, COALESCE(p.email, '') AS email, l.kind
		FROM links l JOIN people p ON p.id = l.person_id WHERE `+liveLink, hash)
	return l, err
}

// UseLink uses a link up; false when it cannot be used.
func UseLink(ctx context.Context, tx *ledger.Tx, hash []byte) (bool, error) {
	n, err := tx.Exec(ctx, `
		UPDATE links l SET used_at = clock_timestamp() FROM people p WHERE p.id = l.person_id AND `+liveLink, hash)
	if err != nil {
		return false, fmt.Errorf("couldn't use a link: %w", err)
	}
	return n == 1, nil
}

// Misses tells how often a key failed, and how long ago the last time was.
func Misses(ctx context.Context, r ledger.Reader, key []byte) (n int, ago time.Duration, err error) {
	var row struct {
		Misses int     `db:"misses"`
		Ago    float64 `db:"ago"`
	}
	err = r.Get(ctx, &row, `
		SELECT COALESCE(max(misses), 0) AS misses,
			COALESCE(extract(epoch FROM clock_timestamp() - max(last)), 0)::float8 AS ago
		FROM throttles WHERE key = $1 AND last > clock_timestamp() - interval '1 day'`, key)
	return row.Misses, time.Duration(row.Ago * float64(time.Second)), err
}

// Miss counts a failure; a day without one starts anew.
func Miss(ctx context.Context, tx *ledger.Tx, key []byte) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO throttles (key, misses, last) VALUES ($1, 1, clock_timestamp())
		ON CONFLICT (key) DO UPDATE SET last = clock_timestamp(),
			misses = CASE WHEN throttles.last > clock_timestamp() - interval '1 day' THEN least(throttles.misses + 1, 10000) ELSE 1 END`, key)
	if err != nil {
		return fmt.Errorf("couldn't count a failed sign-in: %w", err)
	}
	return nil
}

// Forgive forgets a key's failures.
func Forgive(ctx context.Context, tx *ledger.Tx, key []byte) error {
	_, err := tx.Exec(ctx, `DELETE FROM throttles WHERE key = $1`, key)
	return err
}

// LockPeople lets one change of people at a time happen, so that two admins cannot
// remove each other.
func LockPeople(ctx context.Context, tx *ledger.Tx) error {
	_, err := tx.Exec(ctx, `LOCK TABLE people IN SHARE ROW EXCLUSIVE MODE`)
	return err
}

// Admins counts the people who are admin and not disabled.
func Admins(ctx context.Context, r ledger.Reader) (n int, err error) {
	err = r.Get(ctx, &n, `SELECT count(*) FROM people WHERE 'admin' = ANY(roles) AND disabled_at IS NULL`)
	return n, err
}

// TokensOf lists a person's tokens, newest first.
func TokensOf(ctx context.Context, r ledger.Reader, person int64) ([]Token, error) {
	var rows []Token
	err := r.Select(ctx, &rows, `
		SELECT id, hint, name, '' AS account, '' AS person, created_at, expires_at, revoked_at
		FROM tokens WHERE person_id = $1 ORDER BY id DESC`, person)
	if err != nil {
		return nil, fmt.Errorf("couldn't list tokens: %w", err)
	}
	return rows, nil
}
