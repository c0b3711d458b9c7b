package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"quittance/ledger"
	"quittance/reconcile/access"
)

type tokenCmd struct {
	New    tokenNewCmd    `cmd:"" help:"Make a token and print it, once."`
	List   tokenListCmd   `cmd:"" help:"List the tokens, never their secrets."`
	Revoke tokenRevokeCmd `cmd:"" help:"End a token; servers follow within two seconds."`
}

type tokenNewCmd struct {
	dataFlag
	Account string        `help:"For agents of this account, which is made when it is new." xor:"owner" required:"" placeholder:"NAME"`
	Person  int64         `help:"For this person (quittance people list)." xor:"owner" required:"" placeholder:"ID"`
	Name    string        `help:"What it is for, to tell it apart in the list." default:"cli"`
	Expires time.Duration `help:"How long it is valid; for ever when absent." placeholder:"720h"`
}

// Run prints the token alone on standard output, for a script to catch.
func (c *tokenNewCmd) Run(ctx context.Context, env environment, out output) error {
	return withAccess(ctx, env, c.dataFlag, func(a *access.Service) error {
		if c.Account != "" {
			token := access.NewToken(access.AgentPrefix)
			if err := a.AddAgentToken(ctx, c.Account, c.Name, token, c.Expires); err != nil {
				return err
			}
			_, err := fmt.Fprintln(out, token)
			return err
		}
		token := access.NewToken(access.PersonPrefix)
		if err := a.AddPersonToken(ctx, c.Person, c.Name, token, c.Expires); err != nil {
			return err
		}
		_, err := fmt.Fprintln(out, token)
		return err
	})
}

type tokenListCmd struct{ dataFlag }

func (c *tokenListCmd) Run(ctx context.Context, env environment, out output) error {
	return withAccess(ctx, env, c.dataFlag, func(a *access.Service) error {
		list, err := a.Tokens(ctx)
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "ID\tTOKEN\tNAME\tFOR\tMADE\tEXPIRES\tREVOKED")
		for _, t := range list {
			owner := "account " + t.Account
			if t.Account == "" {
				owner = "person " + t.Person
			}
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", t.ID, t.Hint, t.Name, owner, day(t.CreatedAt), day(t.ExpiresAt), day(t.RevokedAt))
		}
		return w.Flush()
	})
}

type tokenRevokeCmd struct {
	dataFlag
	ID int64 `arg:"" help:"Its number in the list."`
}

func (c *tokenRevokeCmd) Run(ctx context.Context, env environment, out output) error {
	return withAccess(ctx, env, c.dataFlag, func(a *access.Service) error {
		ok, err := a.RevokeToken(ctx, c.ID)
		if err == nil && !ok {
			err = fmt.Errorf("there is no live token with the number %d", c.ID)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "Token %d is revoked.\n", c.ID)
		return err
	})
}

// withAccess runs f on the database that a server uses, or would use.
func withAccess(ctx context.Context, env environment, data dataFlag, f func(*access.Service) error) (err error) {
	db, done, err := openDatabase(ctx, env, data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	return f(access.New(db))
}

func day(t ledger.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}
