package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// link is the network between two processes: it keeps one address over the restarts of
// the one behind it, and cuts and delays what passes. What it has taken from a sender it
// passes on after the delay, also when the sender is dead by then, as a network does.
type link struct {
	l       net.Listener
	network string // of the target: tcp or unix

	mu      sync.Mutex
	target  string // "" refuses all
	until   time.Time
	delay   delay
	random  *rand.Rand
	open    map[net.Conn]bool
	pending sync.WaitGroup // connections that may still carry something
}

// delay holds back what a part of the connections carry to the target, once, by up to
// most.
type delay struct {
	share float64
	most  time.Duration
}

func newLink(network string) (*link, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("couldn't open a link: %w", err)
	}
	k := &link{l: l, network: network, open: map[net.Conn]bool{}, random: rand.New(rand.NewPCG(0, 0))}
	go k.serve()
	return k, nil
}

func (k *link) address() string { return k.l.Addr().String() }

func (k *link) lead(target string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.target = target
}

// slow says what is delayed from now on; the random numbers are the round's own.
func (k *link) slow(d delay, seed uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.delay, k.random = d, rand.New(rand.NewPCG(seed, 1))
}

// cut breaks every connection, and refuses new ones for a time.
func (k *link) cut(during time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.until = time.Now().Add(during)
	for c := range k.open {
		_ = c.Close()
	}
}

// settle waits until nothing is under way any more, for as long as the longest delay.
func (k *link) settle() { k.pending.Wait() }

func (k *link) close() {
	_ = k.l.Close()
	k.cut(time.Hour)
}

func (k *link) serve() {
	for {
		c, err := k.l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			go k.carry(c)
		}
	}
}

// begin says where a connection leads, and how much later.
func (k *link) begin(c net.Conn) (target string, later time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.target == "" || time.Now().Before(k.until) {
		return "", 0
	}
	k.open[c] = true
	if k.delay.share > 0 && k.random.Float64() < k.delay.share {
		later = time.Duration(k.random.Int64N(int64(k.delay.most)))
	}
	return k.target, later
}

func (k *link) end(c net.Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.open, c)
	_ = c.Close()
}

func (k *link) carry(c net.Conn) {
	target, later := k.begin(c)
	defer k.end(c)
	if target == "" {
		return
	}
	if later > 0 {
		k.pending.Add(1)
		defer k.pending.Done()
	}
	first := make([]byte, 64<<10)
	n, err := c.Read(first)
	if err != nil {
		return
	}
	time.Sleep(later)
	t, err := net.DialTimeout(k.network, target, 5*time.Second)
	if err != nil {
		return
	}
	defer t.Close()
	if _, err := t.Write(first[:n]); err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { // what the sender has written is passed on, whatever became of it
		_, _ = io.Copy(t, c)
		half(t)
	})
	both.Go(func() {
		_, _ = io.Copy(c, t)
		_ = c.Close()
	})
	both.Wait()
}

// half ends one direction.
func half(c net.Conn) {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		_ = h.CloseWrite()
	}
}
