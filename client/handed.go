package client

import (
	"fmt"
	"os"
	"strconv"
)

// The environment in which `quittance work` starts an agent's command for a run that it
// has claimed. An agent in another language reads the same.
const (
	EnvURL          = "QUITTANCE_URL"
	EnvToken        = "QUITTANCE_TOKEN"
	EnvRunID        = "QUITTANCE_RUN_ID"
	EnvAgent        = "QUITTANCE_AGENT"
	EnvWorker       = "QUITTANCE_WORKER"        // as whom the run is held
	EnvAttemptID    = "QUITTANCE_ATTEMPT_ID"    // with the worker: gets the same lease again
	EnvLease        = "QUITTANCE_LEASE"         // the lease's secret token
	EnvEpoch        = "QUITTANCE_EPOCH"         // rises with each holder
	EnvLeaseSeconds = "QUITTANCE_LEASE_SECONDS" // its length
	EnvCheckpoint   = "QUITTANCE_CHECKPOINT"    // a file with the last checkpoint; not set where there is none
	EnvTurn         = "QUITTANCE_TURN"          // its turn
)

// Handed reads from the environment which run this process was started for, by
// `quittance work`. ok is false in a process that was started otherwise. Open takes the
// lease that is held for it:
//
//	if id, o, ok := client.Handed(); ok {
//		run, err := c.Open(ctx, id, o)
//	}
func Handed() (runID string, o RunOptions, ok bool) {
	runID = os.Getenv(EnvRunID)
	seconds, _ := strconv.Atoi(os.Getenv(EnvLeaseSeconds))
	o = RunOptions{Agent: os.Getenv(EnvAgent), Worker: os.Getenv(EnvWorker), AttemptID: os.Getenv(EnvAttemptID), LeaseSeconds: seconds}
	return runID, o, runID != "" && o.AttemptID != ""
}

// HandOver is the environment, as NAME=value, that lets another process act for the run
// that this one holds. It holds the lease's secret.
func (r *Run) HandOver() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	env := []string{
		EnvURL + "=" + r.c.base, EnvToken + "=" + r.c.token, EnvRunID + "=" + r.id, EnvAgent + "=" + r.opts.Agent,
		EnvWorker + "=" + r.opts.Worker, EnvAttemptID + "=" + r.attempt, EnvLease + "=" + r.lease.Token,
		fmt.Sprintf("%s=%d", EnvEpoch, r.lease.Epoch), fmt.Sprintf("%s=%d", EnvLeaseSeconds, r.opts.LeaseSeconds),
	}
	if r.checkpoint != nil {
		env = append(env, fmt.Sprintf("%s=%d", EnvTurn, r.checkpoint.Turn))
	}
	return env
}

// Saved is the checkpoint from which the run goes on; nil when nothing was saved yet.
func (r *Run) Saved() *Checkpoint {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.checkpoint
}

// Over is closed when this process does not hold the run any more, for whatever reason.
func (r *Run) Over() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

// Abandon leaves the run as a process does that dies: nothing is sent, and the lease
// runs out.
func (r *Run) Abandon() { r.letGo() }
