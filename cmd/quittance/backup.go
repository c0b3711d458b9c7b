package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"quittance/ledger"
	"quittance/ledger/backup"
	"quittance/ledger/embedded"
	store "quittance/ledger/seal"
	"quittance/reconcile/seal"
)

type backupCmd struct {
	dataFlag
	Folder   string `arg:"" help:"Where to put it; made by this command." type:"path"`
	Physical bool   `help:"Copy PostgreSQL's own folder with pg_basebackup, for continuous archiving and large databases. Without it pg_dump writes one file."`
}

// Run copies the database while servers work on it. Beside the copy stands the anchor of
// a block that it holds.
func (c *backupCmd) Run(ctx context.Context, env environment, out output) (err error) {
	db, to, done, err := c.reach(ctx, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	folder, err := backup.Begin(c.Folder)
	if err != nil {
		return err
	}
	defer folder.Drop()
	// Before the copy begins, so that it holds this block.
	head, err := store.ReadHead(ctx, db)
	if err != nil {
		return err
	}
	if err := seal.NewAnchor(folder.Path(embedded.AnchorName)).Write(head); err != nil {
		return err
	}
	if c.Physical {
		err = folder.Base(ctx, db, to)
	} else {
		err = folder.Dump(ctx, db, to)
	}
	if err != nil {
		return err
	}
	if err := folder.Finish(); err != nil {
		return err
	}
	size, err := sizeOf(c.Folder)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s: %d bytes, sealed to block %d. docs/operations.md says how to restore it.\n", c.Folder, size, head.Number)
	return err
}

var errNoURL = usagef("DATABASE_URL is not of the form postgres://user:password@host/name, from which the password can be kept off the command line of PostgreSQL's programs")

// reach opens the database, and says how PostgreSQL's programs connect to it.
func (c *backupCmd) reach(ctx context.Context, env environment) (*ledger.DB, backup.Connection, func() error, error) {
	if env.DatabaseURL != "" {
		to, err := backup.To(string(env.DatabaseURL))
		if errors.Is(err, backup.ErrNotURL) {
			err = errNoURL
		}
		if err != nil {
			return nil, to, nil, err
		}
		db, done, err := openDatabase(ctx, env, c.dataFlag)
		return db, to, done, err
	}
	in, err := embedded.Reach(ctx, embedded.Options{Dir: c.Data})
	if err != nil {
		return nil, backup.Connection{}, nil, err
	}
	done := func() error { return in.Stop(context.WithoutCancel(ctx)) }
	dsn := in.DSN()
	if c.Physical {
		dsn = in.AdminDSN() // copying the whole cluster is the superuser's
	}
	to, err := backup.To(dsn)
	if err != nil {
		return nil, to, nil, errors.Join(err, done())
	}
	db, err := openEmbedded(ctx, in)
	if err != nil {
		return nil, to, nil, errors.Join(err, done())
	}
	return db, to, func() error { return errors.Join(db.Close(), done()) }, nil
}

func sizeOf(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		i, err := e.Info()
		if err == nil {
			size += i.Size()
		}
		return err
	})
	return size, err
}
