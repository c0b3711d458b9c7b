package access

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"quittance/ledger"
	store "quittance/ledger/access"
	"quittance/ledger/audit"
)

// A session ends an hour after its last use, and after a working day in any case.
const (
	sessionIdle = time.Hour
	sessionLife = 12 * time.Hour
	seenEvery   = time.Minute // how exactly the last use is kept
)

// SessionPrefix starts a session's secret.
const SessionPrefix = "qs_"

var (
	// ErrNoSession: nobody is signed in with this secret, and nobody was.
	ErrNoSession = errors.New("nobody is signed in here")
	// ErrSessionOver comes with the session that has ended: it opens nothing any more.
	ErrSessionOver = errors.New("the session has ended")
	// ErrWrong answers every sign-in that does not work, whatever is wrong with it.
	ErrWrong = errors.New("that name and password do not belong together, or the account is disabled")
)

// Throttled is the answer to a sign-in that comes too soon after failed ones.
type Throttled struct{ RetryAfter time.Duration }

func (t *Throttled) Error() string {
	return fmt.Sprintf("too many failed sign-ins; try again in %v", t.RetryAfter.Round(time.Second))
}

// Session is somebody signed in.
type Session struct {
	ID     int64
	Person Person
	Email  string
	Zone   *time.Location
	Now    time.Time // by the database's clock, when it was looked up
	key    []byte    // of form tokens
}

// Session finds who is signed in; used tells that a person did something, which keeps
// an idle session from ending: a page that reads itself again is none. [ErrSessionOver] comes with the session as it was:
// it may be greeted by name, and what it typed may be kept for the same person.
func (s *Service) Session(ctx context.Context, secret string, used bool) (*Session, error) {
	if !strings.HasPrefix(secret, SessionPrefix) || len(secret) > 128 {
		return nil, ErrNoSession
	}
	hash := sha256.Sum256([]byte(secret))
	row, err := store.SessionOf(ctx, s.db, hash[:])
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, ErrNoSession
	}
	if err != nil {
		return nil, fmt.Errorf("couldn't look up a session: %w", err)
	}
	zone, err := time.LoadLocation(row.Zone)
	if err != nil {
		zone = time.UTC // a name that this build's zone data does not have
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("form tokens"))
	out := &Session{ID: row.ID, Person: Person{row.Person, row.Name, row.Roles}, Email: row.Email, Zone: zone, Now: row.Now, key: mac.Sum(nil)}
	if over(row) {
		return out, ErrSessionOver
	}
	if used && row.Now.Sub(row.SeenAt) > seenEvery {
		err := s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error { return store.SeeSession(ctx, tx, row.ID) })
		if err != nil {
			return nil, fmt.Errorf("couldn't note a session's use: %w", err)
		}
	}
	return out, nil
}

func over(row *store.Session) bool {
	return row.Disabled || !row.EndedAt.IsZero() || row.Now.Sub(row.SeenAt) > sessionIdle || !row.ExpiresAt.After(row.Now)
}

// SignIn opens a session for an e-mail address and a password. It answers [ErrWrong]
// or *[Throttled], and writes both to the audit trail. The returned secret belongs in
// a cookie.
func (s *Service) SignIn(ctx context.Context, email, password, zone, address string) (secret string, err error) {
	email = strings.ToLower(strings.TrimSpace(email))
	keys := [][]byte{throttleKey("name", email), throttleKey("address", address)}
	if err := s.throttled(ctx, keys); err != nil {
		return "", errors.Join(err, s.Record(ctx, audit.Row{Via: "page", Action: "sign_in", Outcome: "denied", Note: "too many failed sign-ins"}))
	}
	p, hash, err := store.PersonByEmail(ctx, s.db, email)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return "", fmt.Errorf("couldn't look up a person: %w", err)
	}
	known := err == nil && hash != "" && p.DisabledAt.IsZero()
	if !known {
		hash = nobody
	}
	if !samePassword(hash, password) || !known {
		return "", errors.Join(s.missed(ctx, keys, p.ID, p.Name), ErrWrong)
	}
	return s.begin(ctx, p.ID, p.Name, zone, "password", func(ctx context.Context, tx *ledger.Tx) error { return store.Forgive(ctx, tx, keys[0]) })
}

// SignInByToken opens a session for a personal token, as for the first person of an
// installation, who has no password yet.
func (s *Service) SignInByToken(ctx context.Context, token, zone, address string) (secret string, err error) {
	keys := [][]byte{throttleKey("address", address)}
	if err := s.throttled(ctx, keys); err != nil {
		return "", errors.Join(err, s.Record(ctx, audit.Row{Via: "page", Action: "sign_in", Outcome: "denied", Note: "too many failed sign-ins"}))
	}
	who, err := s.Authenticate(ctx, strings.TrimSpace(token))
	if errors.Is(err, ErrUnknown) || err == nil && who.Person == nil {
		return "", errors.Join(s.missed(ctx, keys, 0, ""), ErrWrong)
	}
	if err != nil {
		return "", err
	}
	return s.begin(ctx, who.Person.ID, who.Person.Name, zone, "token", nil)
}

func (s *Service) begin(ctx context.Context, person int64, name, zone, how string, also func(context.Context, *ledger.Tx) error) (string, error) {
	if _, ok := Zone(zone); !ok {
		zone = "UTC"
	}
	secret := NewToken(SessionPrefix)
	hash := sha256.Sum256([]byte(secret))
	err := s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		if also != nil {
			if err := also(ctx, tx); err != nil {
				return err
			}
		}
		if err := store.AddSession(ctx, tx, hash[:], person, zone, sessionLife); err != nil {
			return err
		}
		return audit.Add(ctx, tx, audit.Row{Person: person, Actor: name, Via: "page", Action: "sign_in", Outcome: "done", Note: "by " + how})
	})
	if err != nil {
		return "", err
	}
	return secret, nil
}

// SignOut ends a session.
func (s *Service) SignOut(ctx context.Context, n *Session) error {
	return s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		if _, err := store.EndSessions(ctx, tx, n.Person.ID, n.ID); err != nil {
			return err
		}
		return audit.Add(ctx, tx, audit.Row{Person: n.Person.ID, Actor: n.Person.Name, Via: "page", Action: "sign_out", Outcome: "done"})
	})
}

// Zone is the time zone of a name that came from outside. The server's own ("", "Local")
// is none: it would mean another one elsewhere.
func Zone(name string) (*time.Location, bool) {
	if name == "" || name == "Local" || len(name) > 64 {
		return nil, false
	}
	zone, err := time.LoadLocation(name)
	return zone, err == nil
}

// SetZone changes the time zone that a session reads times in; an unknown one is an
// error that can be shown.
func (s *Service) SetZone(ctx context.Context, n *Session, zone string) error {
	if _, ok := Zone(zone); !ok {
		return errors.New("there is no such time zone; it is written like Europe/Lisbon")
	}
	return s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		if err := store.SetZone(ctx, tx, n.ID, zone); err != nil {
			return err
		}
		return audit.Add(ctx, tx, audit.Row{Person: n.Person.ID, Actor: n.Person.Name, Via: "page", Action: "session.zone",
			Outcome: "done", Before: quoted(n.Zone.String()), After: quoted(zone)})
	})
}

// Lives tells whether a session's secret still opens anything, without counting as a
// use of it.
func (s *Service) Lives(ctx context.Context, secret string) bool {
	hash := sha256.Sum256([]byte(secret))
	row, err := store.SessionOf(ctx, s.db, hash[:])
	return err == nil && !over(row)
}
