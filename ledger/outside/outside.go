// Package outside reads databases that are not ours: where a team's own systems keep what
// a look-up asks for. It can read and nothing else.
package outside

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lib/pq"
)

// DB is one PostgreSQL. Safe for concurrent use.
type DB struct{ pool *sql.DB }

var (
	mu   sync.Mutex
	open = map[string]*DB{}
)

// Open returns the pool for a libpq URL or key=value list; the same one for the same text,
// so that reading a policy again opens nothing anew. It connects when it is first read. The
// error never holds the text.
func Open(dsn string) (*DB, error) {
	mu.Lock()
	defer mu.Unlock()
	if db, ok := open[dsn]; ok {
		return db, nil
	}
	connector, err := pq.NewConnector(dsn)
	if err != nil {
		return nil, errors.New("is neither a postgres:// URL nor a key=value list")
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(8)
	pool.SetMaxIdleConns(4)
	pool.SetConnMaxIdleTime(time.Minute)
	db := &DB{pool}
	open[dsn] = db
	return db, nil
}

// Forget closes a pool and lets a later [Open] make another.
func Forget(db *DB) {
	mu.Lock()
	defer mu.Unlock()
	for dsn, known := range open {
		if known == db {
			delete(open, dsn)
		}
	}
	_ = db.pool.Close()
}

// maxBytes bounds what is kept of one answer.
const maxBytes = 1 << 20

// Read runs one statement in a read-only transaction that is rolled back, for at most
// patience, and returns at most most rows, each a JSON object whose numbers are exact. more
// says that there were more, or that they were too large. Every argument is bound, never put
// into the text. The error is [context.DeadlineExceeded] or says what the server said
// without its values.
func (d *DB) Read(ctx context.Context, patience time.Duration, most int, query string, args []any) (rows [][]byte, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience+time.Second) // the server's own limit comes first
	defer cancel()
	defer func() {
		if err != nil {
			err = reduce(ctx, err)
		}
	}()
	tx, err := d.pool.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, `SET LOCAL statement_timeout = `+strconv.FormatInt(patience.Milliseconds(), 10)); err != nil {
		return nil, false, err
	}
	// Prepared, the text can hold one statement only: a second one could end the transaction.
	stmt, err := tx.PrepareContext(ctx, query)
	if err != nil {
		return nil, false, err
	}
	defer stmt.Close()
	result, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return nil, false, err
	}
	defer result.Close()
	columns, err := result.ColumnTypes()
	if err != nil {
		return nil, false, err
	}
	size := 0
	for result.Next() {
		if len(rows) == most || size > maxBytes {
			return rows, true, nil
		}
		row, err := object(result, columns)
		if err != nil {
			return nil, false, err
		}
		size += len(row)
		rows = append(rows, row)
	}
	return rows, size > maxBytes, result.Err()
}

// object reads the row at hand.
func object(result *sql.Rows, columns []*sql.ColumnType) ([]byte, error) {
	values := make([]any, len(columns))
	targets := make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	if err := result.Scan(targets...); err != nil {
		return nil, err
	}
	out := []byte{'{'}
	for i, c := range columns {
		if i > 0 {
			out = append(out, ',')
		}
		name, _ := json.Marshal(c.Name())
		out = append(append(out, name...), ':')
		var err error
		if out, err = appendValue(out, values[i], c.DatabaseTypeName()); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

// appendValue keeps numbers as the server spells them: nothing passes through a float but
// what is one there.
func appendValue(out []byte, v any, kind string) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(out, "null"...), nil
	case bool:
		return strconv.AppendBool(out, v), nil
	case int64:
		return strconv.AppendInt(out, v, 10), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return append(out, "null"...), nil
		}
		return strconv.AppendFloat(out, v, 'f', -1, 64), nil
	case time.Time:
		return appendText(out, v.UTC().Format(time.RFC3339Nano)), nil
	case string:
		return appendText(out, v), nil
	case []byte:
		switch {
		case kind == "NUMERIC" && json.Valid(v), kind == "JSON", kind == "JSONB":
			return append(out, v...), nil
		case kind == "BYTEA":
			return appendText(out, hex.EncodeToString(v)), nil
		}
		return appendText(out, string(v)), nil
	}
	return nil, fmt.Errorf("a column of type %s cannot be read here", kind)
}

func appendText(out []byte, s string) []byte {
	quoted, _ := json.Marshal(s)
	return append(out, quoted...)
}

// reduce keeps of an error what may be shown: PostgreSQL's details hold values.
func reduce(ctx context.Context, err error) error {
	var server *pq.Error
	switch {
	case errors.As(err, &server) && server.Code == "57014": // query_canceled: the statement time-out
		return context.DeadlineExceeded
	case errors.As(err, &server):
		return fmt.Errorf("the database refused the statement (%s, %s)", server.Code, strings.ReplaceAll(server.Code.Name(), "_", " "))
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return errors.New("the database could not be reached")
}
