// Package limit keeps look-ups from asking one host too often: so many a second, so many at
// one time, and not at all while the host asks to be left alone. It never waits: whoever is
// refused is told when to try again, and asks about something else meanwhile.
//
// Limits hold for one process. Several servers ask a host so many times as often; its own
// 429 is kept by each.
package limit

import (
	"sync"
	"time"
)

// Limiter counts questions by host. Safe for concurrent use.
type Limiter struct {
	mu    sync.Mutex
	hosts map[string]*host
}

// New is a limiter that has counted nothing.
func New() *Limiter { return &Limiter{hosts: map[string]*host{}} }

type host struct {
	asking int
	next   time.Time // when the next question may start
	quiet  time.Time // until when the host wants to be left alone
}

// busy is when to try again where all places are taken: about as long as an answer takes.
const busy = 50 * time.Millisecond

// Start lets a question to a host begin now, or says when to try again. perSecond 0 is no
// limit, and so is a host of "". done must be called when the answer is there, with how long
// the host then wants to be left alone.
func (l *Limiter) Start(name string, perSecond, atOnce int, now time.Time) (done func(retryAfter time.Duration, now time.Time), again time.Time) {
	if name == "" {
		return func(time.Duration, time.Time) {}, time.Time{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.hosts[name]
	if h == nil {
		h = &host{}
		l.hosts[name] = h
	}
	switch {
	case now.Before(h.quiet):
		return nil, h.quiet
	case atOnce > 0 && h.asking >= atOnce:
		return nil, now.Add(busy)
	case perSecond > 0 && now.Before(h.next):
		return nil, h.next
	}
	h.asking++
	if perSecond > 0 {
		h.next = now.Add(time.Second / time.Duration(perSecond)) // evenly, so that no second holds a burst
	}
	var once sync.Once
	return func(retryAfter time.Duration, now time.Time) {
		once.Do(func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			h.asking--
			if until := now.Add(retryAfter); retryAfter > 0 && until.After(h.quiet) {
				h.quiet = until
			}
		})
	}, time.Time{}
}
