package ledger_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

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
