package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"quittance/ledger"
	"quittance/ledger/backup"
	"quittance/ledger/embedded"
	"quittance/ledger/system"
	"quittance/reconcile/seal"
)

type restoreCmd struct {
	dataFlag
	Folder string `arg:"" help:"A backup made without --physical." type:"existingdir"`
}

// Run puts a backup into an empty database, with no server there to act on it, and opens
// a log gap in it: whoever starts a server on it next, with --restored or without, finds
// that nothing is released.
func (c *restoreCmd) Run(ctx context.Context, env environment, out output) (err error) {
	st, err := os.Stat(filepath.Join(c.Folder, backup.DumpName))
	if err != nil {
		return usagef("%s holds no %s: it is no backup, or one made with --physical (docs/operations.md says how that is restored)", c.Folder, backup.DumpName)
	}
	db, to, done, err := c.reach(ctx, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if err := backup.Restore(ctx, db, to, c.Folder); err != nil {
		return err
	}
	// Before the schema is brought up to date, which may fail. A gap that was acknowledged
	// when the backup was made does not cover this.
	why := fmt.Sprintf("restored from the backup %s, whose last byte was written at %s", filepath.Base(c.Folder), st.ModTime().UTC().Format(time.RFC3339))
	if err := db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error { return system.LoseMore(ctx, tx, why, time.Time{}) }); err != nil {
		return err
	}
	if err := db.Migrate(ctx); err != nil {
		return err
	}
	report, err := seal.Verify(ctx, db, true, seal.Checks(db, seal.NewAnchor(filepath.Join(c.Folder, embedded.AnchorName)))...)
	if err != nil {
		return err
	}
	printReport(out, report)
	if !report.OK {
		return &uncleanError{"the restored record is damaged"}
	}
	_, err = fmt.Fprintln(out, "Restored. Nothing is released until an admin has acknowledged the gap.")
	return err
}

// reach opens the database without touching its schema, and says how PostgreSQL's
// programs connect to it.
func (c *restoreCmd) reach(ctx context.Context, env environment) (*ledger.DB, backup.Connection, func() error, error) {
	dsn, stop := string(env.DatabaseURL), func() error { return nil }
	if dsn == "" {
		in, err := embedded.Reach(ctx, embedded.Options{Dir: c.Data})
		if err != nil {
			return nil, backup.Connection{}, nil, err
		}
		dsn, stop = in.DSN(), func() error { return in.Stop(context.WithoutCancel(ctx)) }
	}
	to, err := backup.To(dsn)
	if errors.Is(err, backup.ErrNotURL) {
		err = errNoURL
	}
	if err != nil {
		return nil, to, nil, errors.Join(err, stop())
	}
	db, err := ledger.Open(ctx, dsn)
	if err != nil {
		return nil, to, nil, errors.Join(err, stop())
	}
	return db, to, func() error { return errors.Join(db.Close(), stop()) }, nil
}
