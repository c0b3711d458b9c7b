package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"quittance/ledger"
	store "quittance/ledger/access"
	"quittance/ledger/samples"
	"quittance/reconcile/access"
	"quittance/reconcile/payments"
	"quittance/reconcile/policy"
)

//go:embed demo/month.yaml
var monthPolicy string

type demoMonthCmd struct {
	dataFlag
	Policy string `help:"Where the policy of the month is written to; a new file." default:"month.yaml" type:"path" placeholder:"FILE"`
	Orders int    `help:"How many orders (${default})." default:"480" placeholder:"N"`
}

// Run fills an empty database with a made-up month, for a look at finance's pages.
func (c *demoMonthCmd) Run(ctx context.Context, env environment, out output) (err error) {
	db, done, err := openDatabase(ctx, env, c.dataFlag)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	file, err := os.OpenFile(c.Policy, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("couldn't write the policy: %w", err)
	}
	_, err = file.WriteString(monthPolicy)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("couldn't write the policy: %w", err)
	}
	n, err := month(ctx, db, c.Orders)
	if err != nil {
		return errors.Join(err, os.Remove(c.Policy))
	}
	where := c.again(env)
	_, err = fmt.Fprintf(out, "%d orders, %d transfers, %d refunds. Look at them with:\n  quittance serve --policy %s%s\n"+
		"Sign in with a token of one of its people, who are of finance:\n  quittance token new --person 1%s\n", n.Orders, n.Transfers, n.Refunds, c.Policy, where, where)
	return err
}

func month(ctx context.Context, db *ledger.DB, orders int) (n samples.Counts, err error) {
	rules, mistakes := policy.Load("month.yaml", []byte(monthPolicy))
	if rules == nil {
		return n, fmt.Errorf("the month's own policy is wrong: %v", mistakes)
	}
	pay, err := payments.New(ctx, payments.Options{DB: db, Policy: func() *policy.Policy { return rules }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return n, err
	}
	who := samples.Who{ReceiptHash: pay.ReceiptHash}
	people := access.New(db)
	for name, into := range map[string]*int64{"Ada Winter": &who.Approver, "Ben Aydin": &who.Sender, "Cem Roth": &who.Other} {
		if *into, err = people.AddPerson(ctx, name, "", []string{"finance"}); err != nil {
			return n, err
		}
	}
	err = db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) (err error) {
		who.Account, err = store.Account(ctx, tx, "demo")
		return err
	})
	if err != nil {
		return n, err
	}
	return samples.Month(ctx, db, who, orders)
}
