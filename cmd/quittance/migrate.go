package main

import (
	"context"
	"fmt"

	"quittance/ledger"
	"quittance/ledger/embedded"
)

type migrateCmd struct{ dataFlag }

// Run migrates and says from where to where. An embedded database needs no such call,
// but gets the same answer.
func (c *migrateCmd) Run(ctx context.Context, env environment, out output) (err error) {
	dsn := string(env.DatabaseURL)
	if dsn == "" {
		in, err := embedded.Reach(ctx, embedded.Options{Dir: c.Data})
		if err != nil {
			return err
		}
		defer func() {
			if stopErr := in.Stop(context.WithoutCancel(ctx)); err == nil {
				err = stopErr
			}
		}()
		dsn = in.DSN()
	}
	db, err := ledger.Open(ctx, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	before, _, err := db.SchemaVersion(ctx)
	if err != nil {
		return err
	}
	if err := db.Migrate(ctx); err != nil {
		return err
	}
	after, _, err := db.SchemaVersion(ctx)
	if err != nil {
		return err
	}
	if before == after {
		_, err = fmt.Fprintf(out, "The schema is at version %d; there was nothing to do.\n", after)
	} else {
		_, err = fmt.Fprintf(out, "The schema went from version %d to %d.\n", before, after)
	}
	return err
}
