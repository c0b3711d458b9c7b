package access

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"quittance/ledger"
	store "quittance/ledger/access"
	"quittance/ledger/audit"
)

// Lives of one-time links. An invite waits for somebody to come back from the
// weekend; a sign-in link is used by who asked for it.
const (
	InviteLife     = 72 * time.Hour
	SignInLinkLife = 15 * time.Minute
)

// Kinds of links.
const (
	LinkInvite = "invite"
	LinkSignIn = "sign_in"
)

var (
	// ErrNoLink answers a link that was used, has expired or never was.
	ErrNoLink = errors.New("this link was used already, has expired, or is not whole")
	// ErrChanged: somebody changed the same thing meanwhile.
	ErrChanged = errors.New("somebody has changed this meanwhile; look again")
	// ErrLastAdmin: nobody could manage people any more.
	ErrLastAdmin = errors.New("this is the last person who is an admin")
)

// MadeBy is who makes a change, for the audit trail. The zero value is the command
// line.
type MadeBy struct {
	Person    *Person
	RequestID string
}

// Row is the trail's line of a change that was made.
func (m MadeBy) Row(action, subject string) audit.Row {
	r := audit.Row{Actor: "command line", Via: "command", Action: action, Outcome: "done", Subject: subject, RequestID: m.RequestID}
	if m.Person != nil {
		r.Person, r.Actor, r.Via = m.Person.ID, m.Person.Name, "page"
	}
	return r
}

// tokenRow is the line of a change to a token, of an account or of a person.
func (m MadeBy) tokenRow(action string, account, person int64, name string) audit.Row {
	subject := subjectOf(person)
	if person == 0 {
		subject = fmt.Sprintf("account:%d", account)
	}
	r := m.Row(action, subject)
	r.Note = name
	return r
}

func subjectOf(person int64) string { return fmt.Sprintf("person:%d", person) }

func quoted(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// Record writes a line to the audit trail that no change carries, such as a denied
// attempt. Of one person's repeats a hundred a minute are kept.
func (s *Service) Record(ctx context.Context, r audit.Row) error {
	if r.Outcome == "denied" {
		n, err := audit.DeniedLately(ctx, s.db, r.Person, r.Action)
		if err != nil || n >= 100 {
			return err
		}
	}
	return s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error { return audit.Add(ctx, tx, r) })
}

// Link makes a one-time link for a person and returns its secret.
func (s *Service) Link(ctx context.Context, by MadeBy, person int64, kind string) (secret string, err error) {
	life := SignInLinkLife
	if kind == LinkInvite {
		life = InviteLife
	}
	secret = NewToken("ql_")
	hash := sha256.Sum256([]byte(secret))
	var maker int64
	if by.Person != nil {
		maker = by.Person.ID
	}
	err = s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		if err := store.AddLink(ctx, tx, hash[:], person, kind, maker, life); err != nil {
			return err
		}
		return audit.Add(ctx, tx, by.Row("person.link", subjectOf(person)))
	})
	return secret, err
}

// Opened is what a one-time link is for.
type Opened struct {
	Person int64
	Name   string
	Email  string
	Kind   string
}

// OpenLink looks at a link without using it; [ErrNoLink].
func (s *Service) OpenLink(ctx context.Context, secret string) (Opened, error) {
	hash := sha256.Sum256([]byte(secret))
	l, err := store.LinkOf(ctx, s.db, hash[:])
	if errors.Is(err, ledger.ErrNotFound) {
		return Opened{}, ErrNoLink
	}
	return Opened{l.Person, l.Name, l.Email, l.Kind}, err
}

// UseLink uses a link up and opens a session. An invite sets the password; a sign-in
// link takes none. [ErrNoLink], or why the password will not do.
func (s *Service) UseLink(ctx context.Context, secret, password, zone string) (session string, err error) {
	l, err := s.OpenLink(ctx, secret)
	if err != nil {
		return "", err
	}
	var phc string
	if l.Kind == LinkInvite {
		if err := CheckPassword(password); err != nil {
			return "", err
		}
		phc = hashPassword(password)
	}
	hash := sha256.Sum256([]byte(secret))
	return s.begin(ctx, l.Person, l.Name, zone, strings.ReplaceAll(l.Kind, "_", "-")+" link", func(ctx context.Context, tx *ledger.Tx) error {
		ok, err := store.UseLink(ctx, tx, hash[:])
		if err != nil {
			return err
		}
		if !ok {
			return ErrNoLink
		}
		if phc == "" {
			return nil
		}
		if err := store.SetPassword(ctx, tx, l.Person, phc); err != nil {
			return err
		}
		// Whoever knew the old password is out.
		_, err = store.EndSessions(ctx, tx, l.Person, 0)
		return err
	})
}

// Add adds somebody with roles and makes their invite.
func (s *Service) Add(ctx context.Context, by MadeBy, name, email string, roles []string) (invite string, err error) {
	email = strings.ToLower(strings.TrimSpace(email))
	if at := strings.IndexByte(email, '@'); at < 1 || at == len(email)-1 || len(email) > 320 || strings.ContainsAny(email, " \t\r\n") {
		return "", errors.New("an e-mail address is needed to sign in")
	}
	id, err := s.addPerson(ctx, by, name, email, roles)
	if err != nil {
		return "", err
	}
	return s.Link(ctx, by, id, LinkInvite)
}

// SetRoles replaces somebody's roles; was are those that the page showed. The last
// admin keeps the role. [ErrChanged], [ErrLastAdmin].
func (s *Service) SetRoles(ctx context.Context, by MadeBy, person int64, was, roles []string) error {
	if err := checkRoles(roles); err != nil {
		return err
	}
	return s.changePerson(ctx, by, "person.roles", person, was, roles, func(ctx context.Context, tx *ledger.Tx) (bool, error) {
		return store.SetRoles(ctx, tx, person, was, roles)
	})
}

// Disable ends somebody's access: sessions and tokens stop at once. [ErrChanged],
// [ErrLastAdmin].
func (s *Service) Disable(ctx context.Context, by MadeBy, person int64) error {
	return s.changePerson(ctx, by, "person.disable", person, "enabled", "disabled", func(ctx context.Context, tx *ledger.Tx) (bool, error) {
		if _, err := store.EndSessions(ctx, tx, person, 0); err != nil {
			return false, err
		}
		return store.DisablePerson(ctx, tx, person)
	})
}

// Enable gives somebody their access back.
func (s *Service) Enable(ctx context.Context, by MadeBy, person int64) error {
	return s.changePerson(ctx, by, "person.enable", person, "disabled", "enabled", func(ctx context.Context, tx *ledger.Tx) (bool, error) {
		return store.EnablePerson(ctx, tx, person)
	})
}

// changePerson makes a guarded change with its audit line, unless a page would leave no
// admin who can sign in; the command line can make another.
func (s *Service) changePerson(ctx context.Context, by MadeBy, action string, person int64, before, after any, f func(context.Context, *ledger.Tx) (bool, error)) error {
	return s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		if err := store.LockPeople(ctx, tx); err != nil {
			return err
		}
		ok, err := f(ctx, tx)
		if err != nil {
			return err
		}
		if !ok {
			return ErrChanged
		}
		admins, err := store.Admins(ctx, tx)
		if err != nil {
			return err
		}
		if admins == 0 && by.Person != nil {
			return ErrLastAdmin
		}
		r := by.Row(action, subjectOf(person))
		r.Before, r.After = quoted(before), quoted(after)
		return audit.Add(ctx, tx, r)
	})
}

// NewPersonalToken makes a token for a person's own programs and returns it, to be
// shown once.
func (s *Service) NewPersonalToken(ctx context.Context, by MadeBy, person int64, name string, life time.Duration) (string, error) {
	if strings.TrimSpace(name) == "" || len(name) > 256 {
		return "", errors.New("a token has a name of 1 to 256 bytes, to know it by later")
	}
	token := NewToken(PersonPrefix)
	if err := s.addToken(ctx, by, "", person, strings.TrimSpace(name), token, life); err != nil {
		return "", err
	}
	return token, nil
}

// RevokePersonalToken ends a token of a person; [ErrChanged] when they have no such
// live token.
func (s *Service) RevokePersonalToken(ctx context.Context, by MadeBy, person, id int64) error {
	return s.revoke(ctx, by, person, id)
}
