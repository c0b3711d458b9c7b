package desk

import (
	"context"
	"sync"
	"time"

	"quittance/ledger"
	"quittance/ledger/queue"
)

// namesOffered is how many tools or agents the filter offers to complete; any other
// can be typed. namesFor is how long the list is used again.
const (
	namesOffered = 1000
	namesFor     = 10 * time.Second
)

// names keeps what the filter offers: every page of the queue shows it, and it hardly
// changes.
type names struct {
	mu    sync.Mutex
	list  queue.Names
	until time.Time
}

func (n *names) get(ctx context.Context, db *ledger.DB) (queue.Names, error) {
	n.mu.Lock()
	list, fresh := n.list, time.Now().Before(n.until)
	n.mu.Unlock()
	if fresh {
		return list, nil
	}
	list, err := queue.NamesWaiting(ctx, db, namesOffered)
	if err != nil {
		return list, err
	}
	n.mu.Lock()
	n.list, n.until = list, time.Now().Add(namesFor)
	n.mu.Unlock()
	return list, nil
}
