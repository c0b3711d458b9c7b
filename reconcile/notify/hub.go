// Package notify wakes those who wait for a change: long polls and open pages. A
// wake is a hint to read again; it carries no state, may be late or lost, and
// nothing is decided by it.
package notify

import (
	"context"
	"sync"
	"time"

	"quittance/ledger"
)

// Channel is the PostgreSQL channel by which servers wake each other.
const Channel = "quittance_changed"

// All is the topic that every change touches.
const All = ""

// coalesce is how long hints are gathered before other servers are told: a NOTIFY
// in each commit would serialise all of them.
const coalesce = 100 * time.Millisecond

// Hub passes hints on inside one server. The zero value is not usable; see NewHub.
type Hub struct {
	mu      sync.Mutex
	waiting map[string]map[chan struct{}]struct{}
	dirty   map[string]struct{} // topics to tell other servers of
	wake    chan struct{}
}

// NewHub makes an empty hub.
func NewHub() *Hub {
	return &Hub{waiting: map[string]map[chan struct{}]struct{}{}, dirty: map[string]struct{}{}, wake: make(chan struct{}, 1)}
}

// Subscribe returns a channel that receives after each hint on the topic, several
// hints at once counting as one, until cancel is called.
func (h *Hub) Subscribe(topic string) (hints <-chan struct{}, cancel func()) {
	c := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting[topic] == nil {
		h.waiting[topic] = map[chan struct{}]struct{}{}
	}
	h.waiting[topic][c] = struct{}{}
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.waiting[topic], c)
		if len(h.waiting[topic]) == 0 {
			delete(h.waiting, topic)
		}
	}
}

// Waiting is how many wait for hints on the topic.
func (h *Hub) Waiting(topic string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.waiting[topic])
}

// Changed tells that something about the topic changed and was committed.
func (h *Hub) Changed(topics ...string) {
	h.mu.Lock()
	for _, t := range topics {
		h.local(t)
		h.dirty[t] = struct{}{}
	}
	if len(topics) > 0 {
		h.local(All)
	}
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

func (h *Hub) local(topic string) {
	for c := range h.waiting[topic] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// everything wakes all, after hints may have been lost.
func (h *Hub) everything() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for t := range h.waiting {
		h.local(t)
	}
}

// Run tells other servers of changes, and hears of theirs, until ctx ends.
func (h *Hub) Run(ctx context.Context, db *ledger.DB) error {
	heard, err := db.Listen(ctx, Channel)
	if err != nil {
		return err
	}
	tick := time.NewTimer(0)
	defer tick.Stop()
	<-tick.C
	due := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case n, ok := <-heard:
			if !ok {
				return nil
			}
			if n.Reread {
				h.everything()
				continue
			}
			h.mu.Lock()
			h.local(n.Payload)
			h.local(All)
			h.mu.Unlock()
		case <-h.wake:
			if !due {
				due = true
				tick.Reset(coalesce)
			}
		case <-tick.C:
			due = false
			h.tell(ctx, db)
		}
	}
}

// maxTopics is how many topics are named one by one; more become one hint on All.
const maxTopics = 50

func (h *Hub) tell(ctx context.Context, db *ledger.DB) {
	h.mu.Lock()
	topics := h.dirty
	h.dirty = map[string]struct{}{}
	h.mu.Unlock()
	if len(topics) > maxTopics {
		topics = map[string]struct{}{All: {}}
	}
	for t := range topics {
		// A lost hint costs a waiter at most its re-read interval.
		_ = db.Notify(ctx, Channel, t)
	}
}
