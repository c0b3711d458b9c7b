package ledger_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"quittance/ledger"
	"quittance/ledger/ledgertest"
)

// As many transactions as there are connections, each about to run a statement that
// nobody has prepared yet: none may wait for a connection that only another of them
// could give back.
func TestTransactionsNeedOneConnectionEach(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	const n = 48
	var wg sync.WaitGroup
	ready := make(chan struct{}, n)
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			err := db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
				ready <- struct{}{}
				<-start
				var got int
				for range 2 {
					if err := tx.Get(ctx, &got, fmt.Sprintf(`SELECT %d`, i)); err != nil {
						return err
					}
				}
				if got != i {
					return fmt.Errorf("got %d", got)
				}
				return nil
			})
			if err != nil {
				t.Errorf("transaction %d: %v", i, err)
			}
		})
	}
	// Until every connection is in a transaction and the rest queue for one.
	for open := true; open; {
		select {
		case <-ready:
		case <-time.After(500 * time.Millisecond):
			open = false
		}
	}
	close(start)
	wg.Wait()
}

// What PostgreSQL gave up for no fault of ours is run again, on a transaction of its
// own; anything else is not, and nothing of a failed try is kept.
func TestATransactionIsRunAgainWhereItMayBe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code        pqerror.Code
		fails       int // times that it fails
		tries, rows int
	}{
		"no failure":            {"", 0, 1, 1},
		"deadlock, once":        {"40P01", 1, 2, 1},
		"serialisation, thrice": {"40001", 3, 4, 1},
		"deadlock, for ever":    {"40P01", 99, 5, 0},
		"unique violation":      {"23505", 1, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := ledgertest.New(t)
			run(t, db.Pool(), `CREATE TABLE tried (n int)`)
			tries := 0
			err := db.InTx(t.Context(), func(ctx context.Context, tx *ledger.Tx) error {
				tries++
				if _, err := tx.Exec(ctx, `INSERT INTO tried VALUES ($1)`, tries); err != nil {
					return err
				}
				if tries <= c.fails {
					return fmt.Errorf("couldn't try: %w", &pq.Error{Code: c.code})
				}
				return nil
			})
			var rows int
			if err := db.Get(t.Context(), &rows, `SELECT count(*) FROM tried`); err != nil {
				t.Fatal(err)
			}
			if tries != c.tries || rows != c.rows || (err == nil) != (c.rows == 1) {
				t.Errorf("%d tries, %d rows, %v; want %d and %d", tries, rows, err, c.tries, c.rows)
			}
		})
	}
}
