package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

const (
	// watchEvery is how soon a dead server is noticed.
	watchEvery = 200 * time.Millisecond
	// restartPause lies between attempts to start a server that does not come up.
	restartPause = 2 * time.Second
)

// Supervise starts the server again each time it dies (PostgreSQL restarts after the
// death of a child by itself, but nobody restarts a killed postmaster) until ctx
// ends. It must have returned before Stop is called. Only an owner may supervise.
func (in *Instance) Supervise(ctx context.Context, log *slog.Logger) {
	for sleep(ctx, watchEvery) == nil {
		if in.Alive() {
			continue
		}
		log.Error("the database server died; starting it again", "pid", in.pid)
		if err := in.relaunch(ctx); err != nil {
			log.Error("couldn't start the database server again", "err", err)
			_ = sleep(ctx, restartPause)
			continue
		}
		log.Info("the database server runs again", "pid", in.pid)
	}
}

func (in *Instance) relaunch(ctx context.Context) error {
	next, err := in.folder.launch(ctx)
	if err != nil {
		return err
	}
	if next.socket != in.socket || next.port != in.port {
		return fmt.Errorf("couldn't use the restarted server: its socket moved from %s to %s", in.socket, next.socket)
	}
	in.pid, in.exited = next.pid, next.exited
	return nil
}
