package main

import (
	"slices"
	"sync"
	"syscall"
	"time"
)

// member is a server or a bank: a process that is started again whenever it ends.
type member struct {
	w     *world
	name  string
	link  *link // of a server
	lead  func(address string)
	start func() (*process, string, error)

	mu     sync.Mutex
	p      *process
	killed bool // the process's end is ours
	over   bool
	done   chan struct{}
}

// keep starts a member and returns once it is open.
func (w *world) keep(name, mark string, lead func(string), env []string, path string, args ...string) (*member, error) {
	m := &member{w: w, name: name, lead: lead, done: make(chan struct{})}
	n := 0
	m.start = func() (*process, string, error) {
		n++
		p, err := w.guard.start(name, append(slices.Clip(env), w.clock(name, n)), nil, path, args...)
		if err != nil {
			return nil, "", err
		}
		address, err := p.address(mark)
		if err != nil {
			p.kill()
		}
		return p, address, err
	}
	p, address, err := m.start()
	if err != nil {
		return nil, err
	}
	m.p = p
	lead(address)
	go m.attend()
	return m, nil
}

// attend starts the member again each time that it ends. One that does not come up, with
// its database dead for instance, is tried again.
func (m *member) attend() {
	defer close(m.done)
	for {
		<-m.p.ended
		m.lead("")
		m.mu.Lock()
		over, killed := m.over, m.killed
		m.mu.Unlock()
		if over {
			return
		}
		if !killed {
			m.w.trouble("%s ended by itself:\n%s", m.name, m.p.tail(30))
		}
		for {
			p, address, err := m.start()
			m.mu.Lock()
			if over = m.over; err == nil {
				m.p, m.killed = p, false
			}
			m.mu.Unlock()
			if err == nil {
				m.lead(address)
				if over {
					p.kill()
				}
				break
			}
			if over {
				return
			}
			time.Sleep(200 * time.Millisecond)
		}
	}
}

// kill is a crash of the present process.
func (m *member) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.killed {
		return // dead, and not up again
	}
	m.killed = true
	if m.p.kill() {
		m.w.kills.Add(1)
	}
}

// halt stops the process where it is for a time.
func (m *member) halt(during time.Duration) {
	m.mu.Lock()
	p := m.p
	m.mu.Unlock()
	m.w.stops.Add(1)
	p.signal(syscall.SIGSTOP)
	time.Sleep(during)
	p.signal(syscall.SIGCONT)
}

func (m *member) close() {
	m.mu.Lock()
	m.over, m.killed = true, true
	p := m.p
	m.mu.Unlock()
	p.signal(syscall.SIGCONT)
	p.kill()
	<-m.done
	if m.link != nil {
		m.link.close()
	}
}
