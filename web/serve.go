package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// grace is how long a stopping server lets requests finish. It is longer than
// [DefaultTimeout] needs on a healthy day and shorter than the 30 s that most
// supervisors wait before they kill.
const grace = 20 * time.Second

// Serve answers on l until ctx ends, then stops taking connections and lets
// requests finish; those that wait (long polls, event streams) see their context
// end at once. It returns nil after such a stop.
func Serve(ctx context.Context, log *slog.Logger, l net.Listener, h http.Handler) error {
	base, stopWaiting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWaiting()
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context {
			return context.WithValue(base, stoppingKey{}, ctx.Done())
		},
	}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("couldn't serve: %w", err)
	case <-ctx.Done():
	}
	limit, cancel := context.WithTimeout(base, grace)
	defer cancel()
	err := s.Shutdown(limit)
	if errors.Is(err, context.DeadlineExceeded) {
		log.Warn("requests were cut at the end of the stop", "after", grace)
		stopWaiting()
		err = s.Close()
	}
	return err
}

type stoppingKey struct{}

// Stopping is closed when the server that answers ctx's request begins to stop. A
// handler that waits for something returns then; one that writes goes on.
func Stopping(ctx context.Context) <-chan struct{} {
	done, _ := ctx.Value(stoppingKey{}).(<-chan struct{})
	return done // nil, which never fires, outside of Serve
}
