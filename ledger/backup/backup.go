// Package backup runs PostgreSQL's own programs to copy a database. It makes a folder
// that is whole or not there: everything is written beside its place and renamed.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"quittance/ledger"
	"quittance/ledger/embedded"
)

// Names in the folder of a backup.
const (
	DumpName = "database.dump" // pg_dump's custom format, for pg_restore
	BaseName = "postgres"      // a copy of PostgreSQL's own folder, ready to start
)

// Folder is a backup that is being made.
type Folder struct {
	final, part string
}

// Begin makes room for a backup. The place must not exist.
func Begin(dir string) (*Folder, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("couldn't resolve the backup's folder: %w", err)
	}
	if _, err := os.Lstat(dir); err == nil {
		return nil, fmt.Errorf("%s is there already: a backup is never written over another", dir)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("couldn't look for the backup's folder: %w", err)
	}
	// Everything of the company's is in it.
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, fmt.Errorf("couldn't make the folder of the backup: %w", err)
	}
	part, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".part-")
	if err != nil {
		return nil, fmt.Errorf("couldn't make the folder of the backup: %w", err)
	}
	return &Folder{final: dir, part: part}, nil
}

// Path is where a file of the backup is written now.
func (f *Folder) Path(name string) string { return filepath.Join(f.part, name) }

// Finish puts the backup in its place, durably.
func (f *Folder) Finish() error {
	if err := syncAll(f.part); err != nil {
		return fmt.Errorf("couldn't make the backup durable: %w", err)
	}
	if err := os.Rename(f.part, f.final); err != nil {
		return fmt.Errorf("couldn't put the backup in its place: %w", err)
	}
	return syncPath(filepath.Dir(f.final))
}

// Drop removes what there is of a backup that was not finished. After Finish it does
// nothing.
func (f *Folder) Drop() { _ = os.RemoveAll(f.part) }

// Dump writes [DumpName]: one moment of the database, whatever is written meanwhile.
func (f *Folder) Dump(ctx context.Context, db *ledger.DB, c Connection) error {
	major, err := majorOf(ctx, db)
	if err != nil {
		return err
	}
	if err := run(ctx, c, "pg_dump", major, "--format=custom", "--no-password", "--file="+f.Path(DumpName), "--dbname="+c.url); err != nil {
		return err
	}
	if err := os.Chmod(f.Path(DumpName), 0o600); err != nil {
		return fmt.Errorf("couldn't close the backup to others: %w", err)
	}
	return nil
}

// Base writes [BaseName]: the whole cluster with the log that makes it whole, and checks
// it against its manifest. The role has to be allowed to replicate.
func (f *Folder) Base(ctx context.Context, db *ledger.DB, c Connection) error {
	major, err := majorOf(ctx, db)
	if err != nil {
		return err
	}
	err = run(ctx, c, "pg_basebackup", major, "--format=plain", "--wal-method=stream", "--checkpoint=fast", "--no-password",
		"--pgdata="+f.Path(BaseName), "--dbname="+c.url)
	if err != nil {
		return err
	}
	return run(ctx, Connection{}, "pg_verifybackup", major, "--quiet", f.Path(BaseName))
}

func majorOf(ctx context.Context, db *ledger.DB) (major int, err error) {
	if err = db.Get(ctx, &major, `SELECT current_setting('server_version_num')::int / 10000`); err != nil {
		return 0, fmt.Errorf("couldn't read the server's version: %w", err)
	}
	return major, nil
}

// run runs a program of PostgreSQL's. Its environment has the password and none of our
// own secrets; its command line has neither.
func run(ctx context.Context, c Connection, name string, major int, args ...string) error {
	program, err := embedded.Program(name, major)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	for _, v := range os.Environ() {
		if key, _, _ := strings.Cut(v, "="); key != "DATABASE_URL" && !strings.HasPrefix(key, "QUITTANCE_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "LC_ALL=C")
	if c.password != "" {
		cmd.Env = append(cmd.Env, "PGPASSWORD="+c.password)
	}
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("%s failed: %w: %s", name, err, strings.TrimSpace(said.String()))
	}
	return nil
}

// syncAll makes a folder durable with all that is in it. The programs do so for their
// own files; asking again costs nothing.
func syncAll(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() && !e.Type().IsRegular() {
			return err
		}
		return syncPath(path)
	})
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("couldn't sync %s: %w", path, err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("couldn't sync %s: %w", path, err)
	}
	return nil
}
