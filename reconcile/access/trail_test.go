package access_test

import (
	"errors"
	"strings"
	"testing"

	"quittance/ledger/audit"
	"quittance/ledger/ledgertest"
	"quittance/reconcile/access"
)

// TestEachChangeLeavesOneLineThatSaysWhoMadeIt: a page and the command line write the
// same line, but for who it was.
func TestEachChangeLeavesOneLineThatSaysWhoMadeIt(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	s := access.New(db)
	root, err := s.AddPerson(t.Context(), "Ada", "ada@example.com", access.Roles)
	if err != nil {
		t.Fatal(err)
	}
	ada := access.MadeBy{Person: &access.Person{ID: root, Name: "Ada"}}
	lines := func() []audit.Row {
		t.Helper()
		rows, err := audit.Page(t.Context(), db, audit.Filter{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	done := func(ok bool, err error) error {
		if err == nil && !ok {
			err = errors.New("nothing was changed")
		}
		return err
	}
	const a, b = "qp_of-the-command-line-1", "qp_of-the-command-line-2"
	for _, x := range []struct {
		name, action, subject string
		page                  bool
		do                    func() error
	}{
		{"a person, in a shell", "person.add", "person:2", false, func() error {
			_, err := s.AddPerson(t.Context(), "Petra", "", []string{"operator"})
			return err
		}},
		{"a token, in a shell", "token.add", "person:2", false, func() error { return s.AddPersonToken(t.Context(), 2, "laptop", a, 0) }},
		{"an agent's token", "token.add", "account:1", false, func() error { return s.AddAgentToken(t.Context(), "acme", "bot", b, 0) }},
		{"a token, on a page", "token.add", "person:2", true, func() error {
			_, err := s.NewPersonalToken(t.Context(), ada, 2, "script", 0)
			return err
		}},
		{"its end, on a page", "token.revoke", "person:2", true, func() error { return s.RevokePersonalToken(t.Context(), ada, 2, 3) }},
		{"the agent's end", "token.revoke", "account:1", false, func() error { return done(s.RevokeToken(t.Context(), 2)) }},
		{"disabling, in a shell", "person.disable", "person:2", false, func() error { return done(s.DisablePerson(t.Context(), 2)) }},
		{"enabling, on a page", "person.enable", "person:2", true, func() error { return s.Enable(t.Context(), ada, 2) }},
		{"disabling, on a page", "person.disable", "person:2", true, func() error { return s.Disable(t.Context(), ada, 2) }},
	} {
		before := len(lines())
		if err := x.do(); err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
		rows := lines()
		if len(rows) != before+1 {
			t.Errorf("%s leaves %d lines", x.name, len(rows)-before)
		}
		via, actor := "command", "command line"
		if x.page {
			via, actor = "page", "Ada"
		}
		if r := rows[0]; r.Action != x.action || r.Subject != x.subject || r.Via != via || r.Actor != actor {
			t.Errorf("%s: %s of %s by %s, %s", x.name, r.Action, r.Subject, r.Actor, r.Via)
		}
		if strings.Contains(rows[0].Note+rows[0].After, "qp_") {
			t.Errorf("%s: the line holds the token", x.name)
		}
	}
}

// TestAnEnabledPersonHasNoOldTokens: whoever comes back makes new ones.
func TestAnEnabledPersonHasNoOldTokens(t *testing.T) {
	t.Parallel()
	s := access.New(ledgertest.New(t))
	ada, err := s.AddPerson(t.Context(), "Ada", "", access.Roles)
	if err != nil {
		t.Fatal(err)
	}
	petra, err := s.AddPerson(t.Context(), "Petra", "", []string{"operator"})
	if err != nil {
		t.Fatal(err)
	}
	const token = "qp_a-token-of-petra-01"
	if err := s.AddPersonToken(t.Context(), petra, "laptop", token, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Authenticate(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	by := access.MadeBy{Person: &access.Person{ID: ada, Name: "Ada"}}
	if err := errors.Join(s.Disable(t.Context(), by, petra), s.Enable(t.Context(), by, petra)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Authenticate(t.Context(), token); !errors.Is(err, access.ErrUnknown) {
		t.Errorf("the old token: %v", err)
	}
}
