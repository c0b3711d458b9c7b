package main

import (
	"context"
	"errors"
	"fmt"

	"quittance/ledger"
	"quittance/ledger/embedded"
)

// openDatabase gives a short command the database that a server uses, or would use:
// the one DATABASE_URL names, the embedded one of a running server, or the embedded
// one started for this call. done releases it.
func openDatabase(ctx context.Context, env environment, data dataFlag) (db *ledger.DB, done func() error, err error) {
	if env.DatabaseURL != "" {
		db, err := ledger.Open(ctx, string(env.DatabaseURL))
		if err != nil {
			return nil, nil, err
		}
		if err := checkSchema(ctx, db); err != nil {
			return nil, nil, errors.Join(err, db.Close())
		}
		return db, db.Close, nil
	}
	in, err := embedded.Reach(ctx, embedded.Options{Dir: data.Data})
	if err != nil {
		return nil, nil, err
	}
	db, err = openEmbedded(ctx, in)
	if err != nil {
		return nil, nil, errors.Join(err, in.Stop(context.WithoutCancel(ctx)))
	}
	return db, func() error {
		return errors.Join(db.Close(), in.Stop(context.WithoutCancel(ctx)))
	}, nil
}

// openEmbedded connects to our own server, whose schema is ours to change.
func openEmbedded(ctx context.Context, in *embedded.Instance) (*ledger.DB, error) {
	db, err := ledger.Open(ctx, in.DSN())
	if err != nil {
		return nil, err
	}
	if err := db.Migrate(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// checkSchema refuses a database that this program would misread.
func checkSchema(ctx context.Context, db *ledger.DB) error {
	have, want, err := db.SchemaVersion(ctx)
	if err != nil {
		return err
	}
	if have < want {
		return fmt.Errorf("the database's schema is at version %d, this program needs %d: run `quittance migrate`", have, want)
	}
	return nil
}
