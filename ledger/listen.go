package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/lib/pq"
)

const (
	// A listener comes back this fast after a break, and at worst this slowly.
	minReconnect = 100 * time.Millisecond
	maxReconnect = 5 * time.Second
	// pingEvery finds a connection that died without a word.
	pingEvery = 30 * time.Second
	// listenBuffer is how far a reader may fall behind before it is told to re-read.
	listenBuffer = 256
)

// Event is a hint that something changed. It carries no state: the reader looks into
// the tables.
type Event struct {
	Channel, Payload string
	// Reread means that hints may have been lost: everything has to be read again.
	Reread bool
}

// Listen delivers the notifications of the channels until ctx ends, then closes the
// returned channel. It returns once it listens, and the first event is a Reread, so
// that a reader needs no first look of its own. A Reread also follows each break of
// the connection, and stands in for what a slow reader missed: Listen never waits for
// its reader.
func (d *DB) Listen(ctx context.Context, channels ...string) (<-chan Event, error) {
	// The reasons of breaks are not told: a Reread is all that a reader can act on.
	l := pq.NewListener(d.dsn, minReconnect, maxReconnect, nil)
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	for _, c := range channels {
		// Waits for the first connection; Close, when ctx ends, frees it.
		if err := l.Listen(c); err != nil {
			stop()
			_ = l.Close()
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, fmt.Errorf("couldn't listen on %s: %w", c, err)
		}
	}
	if ctx.Err() != nil { // it ended between the last LISTEN and here
		return nil, context.Cause(ctx)
	}
	out := make(chan Event, listenBuffer)
	out <- Event{Reread: true}
	go ping(ctx, l)
	go deliver(ctx, l, out)
	return out, nil
}

// deliver copies what comes in until ctx ends.
func deliver(ctx context.Context, l *pq.Listener, out chan<- Event) {
	var owed <-chan time.Time // set while a reader that fell behind is owed a Reread
	for {
		e := Event{Reread: true}
		select {
		case <-ctx.Done():
			close(out)
			for range l.NotificationChannel() { // its sender must not hang on us while it closes
			}
			return
		case <-owed:
		case n := <-l.NotificationChannel():
			if n != nil && owed == nil { // nil: the connection broke and came back
				e = Event{Channel: n.Channel, Payload: n.Extra}
			}
		}
		if ctx.Err() != nil { // the listener that ends says so like one that broke
			continue
		}
		select {
		case out <- e:
			owed = nil
		default:
			owed = time.After(minReconnect)
		}
	}
}

func ping(ctx context.Context, l *pq.Listener) {
	t := time.NewTicker(pingEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			_ = l.Ping() // a failure makes the listener reconnect, which delivers a Reread
		}
	}
}

// Notify sends one hint. Not for begin and finish: PostgreSQL serialises the commits
// of transactions that notify.
func (d *DB) Notify(ctx context.Context, channel, payload string) error {
	if _, err := d.read.ExecContext(ctx, `SELECT pg_notify($1, $2)`, channel, payload); err != nil {
		return fmt.Errorf("couldn't notify %s: %w", channel, err)
	}
	return nil
}
