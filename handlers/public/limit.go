package public

import (
	"sync"
	"time"
)

// Limits of one network address in a minute. A receipt's token cannot be guessed; this keeps
// whoever tries from filling logs and asking the database for it. Several payers may share
// an address, or come through one proxy.
const (
	anyLimit  = 600
	missLimit = 30
	// addresses bounds the memory: with more at once, all start again.
	addresses = 50_000
)

type limiter struct {
	mu     sync.Mutex
	minute time.Time
	seen   map[string]*[2]int
	now    func() time.Time
}

func newLimiter() *limiter { return &limiter{seen: map[string]*[2]int{}, now: time.Now} }

func (l *limiter) count(address string, what int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.now().Truncate(time.Minute); !m.Equal(l.minute) || len(l.seen) > addresses {
		l.minute = m
		clear(l.seen)
	}
	if l.seen[address] == nil {
		l.seen[address] = new([2]int)
	}
	l.seen[address][what]++
	return l.seen[address][what]
}

// allow counts a request.
func (l *limiter) allow(address string) bool { return l.count(address, 0) <= anyLimit }

// missed counts one that named no receipt; true for one too many. What does name one is
// still answered then.
func (l *limiter) missed(address string) bool { return l.count(address, 1) > missLimit }
