package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"quittance/client"
)

// file is where an agent keeps its own log.
func (l *lane) file() string { return l.w.path(l.r.Name + ".jsonl") }

// follow has the program read the agent's log, and write decisions into it, until end is
// called. It is killed now and then, and started again.
func (l *lane) follow() (end func(), err error) {
	if err := os.WriteFile(l.file(), nil, 0o600); err != nil {
		return nil, fmt.Errorf("couldn't make a log file: %w", err)
	}
	over := make(chan struct{})
	var following sync.WaitGroup
	following.Go(func() {
		for n := 0; ; n++ {
			p, err := l.w.guard.start("follower of "+l.r.Name, append(slices.Clip(l.w.env), l.w.clock("follower of "+l.r.Name, n)), nil,
				l.w.quittance, "log", "follow", l.file(), "--account", "default", "--run", l.r.Name, "--data", l.w.path("anchors"))
			if err != nil {
				l.w.trouble("%v", err)
				return
			}
			life := time.Duration(500+draw(l.p.Seed, 8000, "follower", l.r.Name, n)) * time.Millisecond
			select {
			case <-over:
				p.kill()
				return
			case <-p.ended: // the database is away
				time.Sleep(200 * time.Millisecond)
			case <-time.After(life):
				if p.kill() {
					l.w.kills.Add(1)
				}
			}
		}
	})
	return func() { close(over); following.Wait() }, nil
}

// read waits until the record has the end of a run that its own log has.
func (l *lane) read(ctx context.Context) bool {
	for end := time.Now().Add(patience); time.Now().Before(end) && ctx.Err() == nil; pause(ctx, 200*time.Millisecond) {
		if v, err := l.w.reader.Run(ctx, l.r.Name, 0); err == nil && v.State == client.RunFinished {
			return true
		}
	}
	return false
}
