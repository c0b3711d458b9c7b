// Package ledger is the one place that speaks SQL. The root holds the connection,
// the transaction and LISTEN; each subpackage holds the statements of one subject.
//
// Only [DB.InTx] hands out a [Tx]. Packages above ledger pass a Tx on and never
// build a statement themselves.
package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // the driver is part of the ledger's contract
)

// DB is two pools of connections to one PostgreSQL database: one for transactions,
// whose statements all find their rows by key, one for reads. Safe for concurrent use.
type DB struct {
	tx, read pool
	dsn      string
}

// pool is connections with the statements prepared on them.
type pool struct {
	*sqlx.DB
	mu    *sync.RWMutex
	stmts map[string]*sqlx.Stmt
}

// Open connects to the database named by dsn (a libpq URL or key/value string)
// and fails when it cannot be reached. The error never contains the DSN.
func Open(ctx context.Context, dsn string) (*DB, error) {
	dsn = manyHosts(dsn)
	tx, err := open(ctx, dsn, byKey)
	if err != nil {
		return nil, err
	}
	read, err := open(ctx, dsn, byPage)
	if err != nil {
		_ = tx.Close()
		return nil, err
	}
	return &DB{tx: tx, read: read, dsn: dsn}, nil
}

// byKey are settings for sessions in which every statement finds a few rows by
// index, whatever its arguments and however small the tables still are: planning it
// anew for each call costs more than running it, and a plan made while a table was
// empty must not scan it once it is large. Hence the costs too: a row that is looked at
// counts for as much as a hundred pages.
var byKey = map[string]string{
	"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off",
	"random_page_cost": "0.01", "seq_page_cost": "0.01", "cpu_tuple_cost": "1",
}

// byPage are settings for sessions that read pages: a few rows out of many. What a page
// needs is in memory or on a disk without heads, where a row by its key costs hardly more
// than the next one.
var byPage = map[string]string{"random_page_cost": "1.1"}

// connections is how many each pool opens at most.
const connections = 16

func open(ctx context.Context, dsn string, settings map[string]string) (pool, error) {
	dsn, err := withSettings(dsn, settings)
	if err != nil {
		return pool{}, err
	}
	x, err := sqlx.Open("postgres", dsn)
	if err != nil {
		return pool{}, errBadDSN
	}
	x.SetMaxOpenConns(connections)
	x.SetMaxIdleConns(connections)
	x.SetConnMaxIdleTime(5 * time.Minute)
	if err := x.PingContext(ctx); err != nil {
		_ = x.Close()
		return pool{}, fmt.Errorf("couldn't reach the database: %w", err)
	}
	return pool{DB: x, mu: new(sync.RWMutex), stmts: map[string]*sqlx.Stmt{}}, nil
}

var errBadDSN = errors.New("couldn't read the database URL: it is neither a postgres:// URL nor a key=value list")

// withSettings adds run-time parameters to every session of a DSN. Compiling a plan
// to machine code (jit) never pays for statements like ours.
func withSettings(dsn string, settings map[string]string) (string, error) {
	if !strings.Contains(dsn, "://") {
		dsn += " jit=off"
		for name, value := range settings {
			dsn += " " + name + "=" + value
		}
		return dsn, nil
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return "", errBadDSN
	}
	q := u.Query()
	q.Set("jit", "off")
	for name, value := range settings {
		q.Set(name, value)
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// Close releases every connection. One that broke before is gone already: there is
// nothing to report about it.
func (d *DB) Close() error {
	_ = d.tx.Close()
	_ = d.read.Close()
	return nil
}

// Pool gives the raw pool to libraries that insist on one (goose, River).
func (d *DB) Pool() *sql.DB { return d.read.DB.DB }

// Reader runs read statements; both DB and Tx are one. dest follows sqlx:
// a pointer to a struct or scalar for Get, to a slice for Select.
type Reader interface {
	Get(ctx context.Context, dest any, query string, args ...any) error
	Select(ctx context.Context, dest any, query string, args ...any) error
	Query(ctx context.Context, query string, args ...any) (*sqlx.Rows, error)
}

// ErrNotFound is what Get returns when no row matched.
var ErrNotFound = sql.ErrNoRows

// prepared returns the statement for query, prepared once per pool. database/sql
// prepares it again on each connection that meets it first. It may wait for a
// connection: never with the lock held, which those who have one need.
func (p pool) prepared(ctx context.Context, query string) (*sqlx.Stmt, error) {
	if s := p.known(query); s != nil {
		return s, nil
	}
	s, err := p.PreparexContext(ctx, query)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if first, ok := p.stmts[query]; ok {
		_ = s.Close()
		return first, nil
	}
	p.stmts[query] = s
	return s, nil
}

// known is the statement if it was prepared already, or nil.
func (p pool) known(query string) *sqlx.Stmt {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.stmts[query]
}

// Now is the database's clock: ages, leases and order are never decided by a
// server's own.
func (d *DB) Now(ctx context.Context) (now time.Time, err error) {
	if err = d.Get(ctx, &now, `SELECT clock_timestamp()`); err != nil {
		return now, fmt.Errorf("couldn't read the database clock: %w", err)
	}
	return now, nil
}

// Once runs one statement that changes rows as a transaction of its own and reads
// the one row it returns; [ErrNotFound] when it returned none.
func (d *DB) Once(ctx context.Context, dest any, query string, args ...any) error {
	s, err := d.tx.prepared(ctx, query)
	if err != nil {
		return err
	}
	return s.GetContext(ctx, dest, args...)
}

// OnceEach is Once for a statement that returns several rows; the caller closes them.
func (d *DB) OnceEach(ctx context.Context, query string, args ...any) (*sqlx.Rows, error) {
	s, err := d.tx.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.QueryxContext(ctx, args...)
}

// Get reads one row into dest; [ErrNotFound] when there is none.
func (d *DB) Get(ctx context.Context, dest any, query string, args ...any) error {
	s, err := d.read.prepared(ctx, query)
	if err != nil {
		return err
	}
	return s.GetContext(ctx, dest, args...)
}

// Select reads all rows into the slice dest points to.
func (d *DB) Select(ctx context.Context, dest any, query string, args ...any) error {
	s, err := d.read.prepared(ctx, query)
	if err != nil {
		return err
	}
	return s.SelectContext(ctx, dest, args...)
}

// Query streams rows; the caller closes them.
func (d *DB) Query(ctx context.Context, query string, args ...any) (*sqlx.Rows, error) {
	s, err := d.read.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.QueryxContext(ctx, args...)
}

// Tx is one READ COMMITTED transaction, only ever handed out by [DB.InTx].
type Tx struct {
	db  *DB
	x   *sqlx.Tx
	now time.Time
	own map[string]*sqlx.Stmt // prepared for this transaction alone
}

// InTx runs f in a transaction and commits when f returns nil. It starts f again,
// up to four more times, when PostgreSQL gave up a deadlock or a serialisation
// conflict: f must therefore have no effect outside tx. Nothing in f may call the
// network.
func (d *DB) InTx(ctx context.Context, f func(ctx context.Context, tx *Tx) error) error {
	for try := 0; ; try++ {
		err := d.once(ctx, f)
		if err == nil || try == 4 || !Retryable(err) {
			return err
		}
		wait := time.Duration(1+rand.IntN(5<<try)) * time.Millisecond
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

func (d *DB) once(ctx context.Context, f func(ctx context.Context, tx *Tx) error) error {
	x, err := d.tx.BeginTxx(ctx, nil)
	if err != nil {
		return fmt.Errorf("couldn't begin: %w", err)
	}
	// After a commit it does nothing; it must also follow a panic of f, or the
	// connection would keep its transaction, and its locks, for ever.
	defer func() { _ = x.Rollback() }()
	t := &Tx{db: d, x: x}
	if err := f(ctx, t); err != nil {
		return err
	}
	if err := x.Commit(); err != nil {
		return fmt.Errorf("couldn't commit: %w", err)
	}
	for query := range t.own {
		// For the next ones. At worst they prepare it for themselves again.
		_, _ = d.tx.prepared(context.WithoutCancel(ctx), query)
	}
	return nil
}

// Now is the database's clock, read once per transaction: ages, leases and order
// are never decided by a server's own clock.
func (t *Tx) Now(ctx context.Context) (time.Time, error) {
	if t.now.IsZero() {
		if err := t.Get(ctx, &t.now, `SELECT clock_timestamp()`); err != nil {
			return time.Time{}, fmt.Errorf("couldn't read the database clock: %w", err)
		}
	}
	return t.now, nil
}

// Get reads one row into dest; [ErrNotFound] when there is none.
func (t *Tx) Get(ctx context.Context, dest any, query string, args ...any) error {
	s, err := t.prepared(ctx, query)
	if err != nil {
		return err
	}
	return s.GetContext(ctx, dest, args...)
}

// Select reads all rows into the slice dest points to.
func (t *Tx) Select(ctx context.Context, dest any, query string, args ...any) error {
	s, err := t.prepared(ctx, query)
	if err != nil {
		return err
	}
	return s.SelectContext(ctx, dest, args...)
}

// Query streams rows; the caller closes them before the next statement.
func (t *Tx) Query(ctx context.Context, query string, args ...any) (*sqlx.Rows, error) {
	s, err := t.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.QueryxContext(ctx, args...)
}

// Exec runs a statement and says how many rows it touched, which is how a guarded
// UPDATE tells that its guard did not hold.
func (t *Tx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	s, err := t.prepared(ctx, query)
	if err != nil {
		return 0, err
	}
	r, err := s.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// prepared never waits for a second connection: with every connection in a
// transaction that wants one more, all would wait for ever.
func (t *Tx) prepared(ctx context.Context, query string) (*sqlx.Stmt, error) {
	if s := t.own[query]; s != nil {
		return s, nil
	}
	if s := t.db.tx.known(query); s != nil {
		return t.x.StmtxContext(ctx, s), nil
	}
	s, err := t.x.PreparexContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if t.own == nil {
		t.own = map[string]*sqlx.Stmt{}
	}
	t.own[query] = s
	return s, nil
}
