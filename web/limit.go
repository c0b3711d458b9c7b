package web

import (
	"sync"
	"time"
)

// limitAddresses bounds a limiter's memory: with more at once, all start again.
const limitAddresses = 50_000

// Limiter counts what network addresses do, each minute anew. Safe for concurrent use.
type Limiter struct {
	mu     sync.Mutex
	minute time.Time
	seen   map[string]int
	now    func() time.Time
}

// NewLimiter makes one.
func NewLimiter() *Limiter { return &Limiter{seen: map[string]int{}, now: time.Now} }

// Count counts once more and tells how often it was within this minute.
func (l *Limiter) Count(address string) int { return l.add(address, 1) }

// Counted tells how often it was, without counting.
func (l *Limiter) Counted(address string) int { return l.add(address, 0) }

func (l *Limiter) add(address string, n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.now().Truncate(time.Minute); !m.Equal(l.minute) || len(l.seen) > limitAddresses {
		l.minute = m
		clear(l.seen)
	}
	if n > 0 {
		l.seen[address] += n
	}
	return l.seen[address]
}
