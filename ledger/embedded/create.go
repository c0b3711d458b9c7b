package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lib/pq"
)

// settings of a new cluster. Nothing here trades durability away, and the log holds
// no row values: the details of an error and the statement that failed stay out of it.
var settings = map[string]string{
	"shared_buffers":                      "128MB",
	"max_connections":                     "100", // a server and a command beside it hold 33 each at most; the rest is for a look inside
	"max_wal_size":                        "2GB", // fewer checkpoints under load; at most a few seconds of recovery
	"min_wal_size":                        "128MB",
	"wal_compression":                     "on",  // full-page images are most of our WAL
	"jit":                                 "off", // our statements take less time than compiling one
	"timezone":                            "'UTC'",
	"log_timezone":                        "'UTC'",
	"log_line_prefix":                     "'%m [%p] '",
	"log_error_verbosity":                 "terse",
	"log_min_error_statement":             "panic",
	"idle_in_transaction_session_timeout": "'60s'", // no transaction of ours waits for the network
}

// access lets in whoever the kernel says we are, and nobody over the network. The second
// line is for pg_basebackup, which "all" does not cover.
const (
	access       = accessBefore + "local replication all peer map=quittance\n"
	accessBefore = "# The kernel says who is calling; nobody comes over the network.\nlocal all all peer map=quittance\n"
)

// admit brings the file of a cluster that was made without it up to date, unless somebody
// has changed it. It is read when the server starts.
func (f folder) admit() error {
	path := filepath.Join(f.cluster(), "pg_hba.conf")
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("couldn't read who may connect: %w", err)
	}
	if string(text) != accessBefore {
		return nil
	}
	h, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("couldn't say who may connect: %w", err)
	}
	_, err = h.WriteString(access[len(accessBefore):])
	if err := errors.Join(err, h.Sync(), h.Close()); err != nil {
		return fmt.Errorf("couldn't say who may connect: %w", err)
	}
	return nil
}

// create makes the cluster when the folder has none. initdb runs beside the final
// place and its result is renamed there, so that a cluster is whole or absent.
func (f folder) create(ctx context.Context, more map[string]string) error {
	if err := f.checkOurs(); err != nil { // again, now under the lock
		return err
	}
	if _, err := os.Stat(f.cluster()); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("couldn't read the database folder: %w", err)
	}
	in, err := findInstallation(0)
	if err != nil {
		return err
	}
	half := filepath.Join(f.dir, halfName)
	if err := os.RemoveAll(half); err != nil {
		return fmt.Errorf("couldn't clear an unfinished database: %w", err)
	}
	if err := os.Mkdir(half, 0o700); err != nil {
		return fmt.Errorf("couldn't make the database folder: %w", err)
	}
	if f.owner.switched {
		if err := os.Chown(half, f.owner.uid, f.owner.gid); err != nil {
			return fmt.Errorf("couldn't give the database folder to the server's user: %w", err)
		}
	}
	if err := f.initdb(ctx, in, half); err != nil {
		return err
	}
	if err := f.configure(half, more); err != nil {
		return err
	}
	if err := os.Rename(half, f.cluster()); err != nil {
		return fmt.Errorf("couldn't put the new database in place: %w", err)
	}
	return syncPath(f.dir)
}

func (f folder) initdb(ctx context.Context, in installation, dir string) error {
	c := f.owner.command(dir, filepath.Join(in.bin, "initdb"),
		"--pgdata="+dir, "--username="+admin, "--encoding=UTF8", "--locale=C",
		"--auth=reject", "--data-checksums", "--no-instructions")
	out := &strings.Builder{}
	c.Stdout, c.Stderr = out, out
	if err := c.Start(); err != nil {
		return fmt.Errorf("couldn't run initdb: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Process.Kill() })
	defer stop()
	if err := c.Wait(); ctx.Err() != nil {
		return fmt.Errorf("couldn't finish creating the database: %w", context.Cause(ctx))
	} else if err != nil {
		return fmt.Errorf("couldn't create the database: initdb: %w: %s", err, lastLines(out.String(), 4))
	}
	return nil
}

// configure writes the server's files into the new cluster: settings, and who may
// connect, which is nobody but the user we are.
func (f folder) configure(dir string, more map[string]string) error {
	all := maps.Clone(settings)
	maps.Copy(all, more)
	conf := &strings.Builder{}
	conf.WriteString("\n# Set by Quittance when this database was created; yours to change since.\n")
	for _, k := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(conf, "%s = %s\n", k, all[k])
	}
	name := `"` + strings.ReplaceAll(f.owner.caller, `"`, `""`) + `"`
	files := []struct {
		name, text string
		flags      int
	}{
		{"postgresql.conf", conf.String(), os.O_APPEND},
		{"pg_hba.conf", access, os.O_TRUNC},
		{"pg_ident.conf", fmt.Sprintf("quittance %s %s\nquittance %s %s\n", name, Role, name, admin), os.O_TRUNC},
	}
	for _, file := range files {
		h, err := os.OpenFile(filepath.Join(dir, file.name), os.O_WRONLY|file.flags, 0)
		if err != nil {
			return fmt.Errorf("couldn't configure the database: %w", err)
		}
		_, err = h.WriteString(file.text)
		if err := errors.Join(err, h.Sync(), h.Close()); err != nil {
			return fmt.Errorf("couldn't configure the database: %w", err)
		}
	}
	return syncPath(dir)
}

// ensureDatabase makes our role and database where they are missing, which also
// finishes a first start that was killed half-way.
func (in *Instance) ensureDatabase(ctx context.Context) error {
	db, err := sql.Open("postgres", in.AdminDSN())
	if err != nil {
		return fmt.Errorf("couldn't open the maintenance database: %w", err)
	}
	defer db.Close()
	for _, step := range []struct{ missing, make string }{
		{
			`SELECT NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '` + Role + `')`,
			`CREATE ROLE ` + pq.QuoteIdentifier(Role) + ` LOGIN`,
		},
		{
			`SELECT NOT EXISTS (SELECT FROM pg_database WHERE datname = '` + Database + `')`,
			`CREATE DATABASE ` + pq.QuoteIdentifier(Database) + ` OWNER ` + pq.QuoteIdentifier(Role),
		},
	} {
		var missing bool
		if err := db.QueryRowContext(ctx, step.missing).Scan(&missing); err != nil {
			return fmt.Errorf("couldn't look into the new database: %w", err)
		}
		if !missing {
			continue
		}
		if _, err := db.ExecContext(ctx, step.make); err != nil {
			return fmt.Errorf("couldn't set up the new database: %w", err)
		}
	}
	return nil
}

// syncPath makes a folder's entries durable.
func syncPath(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("couldn't sync %s: %w", dir, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("couldn't sync %s: %w", dir, err)
	}
	return nil
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], " | ")
}
