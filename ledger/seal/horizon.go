package seal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"quittance/ledger"

	"github.com/lib/pq"
)

// Reach is what can be sealed of a stream now: every row numbered above After, where the
// last block ends, and up to To is committed and visible, or will never exist.
type Reach struct {
	Stream    Stream
	After, To int64
	// Waits says that a transaction that may still write below To goes on: nothing is
	// sealed of the stream now.
	Waits bool
}

// Numbers are given out in one order and committed in another: a transaction may take
// 7, another take 8 and commit, and the first commit after 8 was sealed. So, in this
// order: read the last number given out; list who may be writing; wait until all of
// those have ended; read the rows with a snapshot made after that.
//
// Whoever took a number had the table locked for writing before (ROW EXCLUSIVE, taken
// when its statement was analysed), and keeps that lock until its end is visible to
// everybody. So it either ended before the list was made, or stands in it. Nobody waits
// for us: we take no lock that a writer wants, we only look at theirs.
//
// This holds on one server only: the transaction's connection cannot change it under us.

var lastNumbers = func() string {
	list := make([]string, len(Streams))
	for i, s := range Streams {
		list[i] = fmt.Sprintf("SELECT %[1]d AS n, COALESCE(pg_sequence_last_value(seqrelid), 0) AS last, seqcache = 1 AS ordered, "+
			"COALESCE((SELECT last_id FROM seal_blocks WHERE stream = '%[2]s' ORDER BY last_id DESC LIMIT 1), 0) AS sealed "+
			"FROM pg_sequence WHERE seqrelid = pg_get_serial_sequence('%[2]s', '%[3]s')::regclass", i, s.Table, s.id)
	}
	return strings.Join(list, " UNION ALL ") + " ORDER BY n"
}()

// writers lists the transactions that hold a lock with which rows can be written.
const writers = `
	SELECT relation::regclass::text AS "table", virtualtransaction AS "transaction"
	FROM pg_locks
	WHERE locktype = 'relation' AND granted AND relation = ANY ($1::regclass[]::oid[]) AND pid IS DISTINCT FROM pg_backend_pid()
	AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
	AND mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')`

type writer struct {
	Table       string `db:"table"`
	Transaction string `db:"transaction"`
}

// Horizon says how far each stream with new numbers can be sealed, after it waited for its writers for as
// long as patience.
func Horizon(ctx context.Context, tx *ledger.Tx, patience time.Duration) ([]Reach, error) {
	var last []struct {
		N       int   `db:"n"`
		Last    int64 `db:"last"`
		Ordered bool  `db:"ordered"`
		Sealed  int64 `db:"sealed"`
	}
	if err := tx.Select(ctx, &last, lastNumbers); err != nil {
		return nil, fmt.Errorf("couldn't read the last numbers: %w", err)
	}
	if len(last) != len(Streams) {
		return nil, errors.New("couldn't read the last numbers: a sealed table has no sequence")
	}
	var tables []string
	var out []Reach
	for i, s := range Streams {
		if !last[i].Ordered {
			// A session with numbers in store writes below the last one given out.
			return nil, fmt.Errorf("couldn't seal %s: its sequence hands out numbers in advance; put it right with: ALTER TABLE %[1]s ALTER COLUMN %[2]s SET CACHE 1", s.Table, s.id)
		}
		if last[i].Last > last[i].Sealed {
			tables = append(tables, s.Table)
			out = append(out, Reach{Stream: s, After: last[i].Sealed, To: last[i].Last})
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	waiting, err := holders(ctx, tx, tables)
	if err != nil {
		return nil, err
	}
	pause := 2 * time.Millisecond
	for until := time.Now().Add(patience); len(waiting) > 0 && time.Now().Before(until); pause = min(2*pause, 50*time.Millisecond) {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
		now, err := holders(ctx, tx, tables)
		if err != nil {
			return nil, err
		}
		for w := range waiting {
			if !now[w] {
				delete(waiting, w)
			}
		}
	}
	for w := range waiting {
		for i := range out {
			out[i].Waits = out[i].Waits || out[i].Stream.Table == w.Table
		}
	}
	return out, nil
}

func holders(ctx context.Context, tx *ledger.Tx, tables []string) (map[writer]bool, error) {
	var list []writer
	if err := tx.Select(ctx, &list, writers, pq.Array(tables)); err != nil {
		return nil, fmt.Errorf("couldn't list the writers: %w", err)
	}
	m := make(map[writer]bool, len(list))
	for _, w := range list {
		m[w] = true
	}
	return m, nil
}
