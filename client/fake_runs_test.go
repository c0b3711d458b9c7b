package client

import (
	"fmt"
	"net/http"
	"time"
)

// The fake's runs: leases, pauses and checkpoints.

func (f *fake) open(r *http.Request, body []byte) (int, any) {
	in := parse[OpenRequest](body)
	f.mu.Lock()
	defer f.mu.Unlock()
	run := f.runs[r.PathValue("run")]
	if run == nil {
		run = &fakeRun{id: r.PathValue("run"), state: RunReady}
		f.runs[run.id] = run
	}
	return f.give(run, in.AttemptID, in.Worker)
}

func (f *fake) give(run *fakeRun, attempt, worker string) (int, any) {
	held := time.Now().Before(run.until)
	switch {
	case held && run.attempt == attempt:
	case run.state == RunFinished:
		return refuse(CodeRunClosed, Problem{Final: true})
	case held:
		return refuse(CodeRunHeld, Problem{RetryAfter: 1, Retryable: true, RetryAction: RetryWait, HeldBy: &HeldBy{Worker: "other"}})
	default:
		f.expire(run)
		if run.state == RunPaused {
			return refuse(CodeRunPaused, Problem{RetryAction: RetryHuman, WaitingFor: []WaitingFor{{EffectID: "e1", Reason: "interrupted"}}})
		}
		run.epoch++
		run.attempt, run.until, run.state = attempt, time.Now().Add(f.lease), RunRunning
		run.token = fmt.Sprintf("lease-%s-%d", run.id, run.epoch)
	}
	out := RunLease{RunID: run.id, State: run.state, Lease: Lease{Token: run.token, Epoch: run.epoch, ExpiresAt: run.until},
		Volatile: f.volatile, LogPosition: "p-open"}
	if run.saved != nil {
		out.Checkpoint = &CheckpointMark{Turn: run.saved.Turn}
	}
	return 200, out
}

// expire interrupts what a run's last holder left in flight.
func (f *fake) expire(run *fakeRun) {
	for _, e := range f.byID {
		if e.run == run && e.state == "in_flight" {
			e.state, run.state = "interrupted", RunPaused
		}
	}
}

func (f *fake) claim(_ *http.Request, body []byte) (int, any) {
	in := parse[ClaimRequest](body)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, run := range f.runs {
		if run.state == RunReady {
			return f.give(run, in.AttemptID, in.Worker)
		}
	}
	return 204, nil
}

// holder finds the run of a lease; nil when the lease is not the current one.
func (f *fake) holder(id, token string) *fakeRun {
	run := f.runs[id]
	if run == nil || run.token != token || !time.Now().Before(run.until) {
		return nil
	}
	return run
}

func (f *fake) heartbeat(r *http.Request, body []byte) (int, any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	run := f.holder(r.PathValue("run"), parse[LeaseRequest](body).Lease)
	if run == nil {
		return refuse(CodeLeaseLost, Problem{Final: true})
	}
	run.until = time.Now().Add(f.lease)
	return 200, LeaseAnswer{State: run.state, ExpiresAt: &run.until, LogPosition: "p-heartbeat"}
}

func (f *fake) release(r *http.Request, body []byte) (int, any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	run := f.holder(r.PathValue("run"), parse[LeaseRequest](body).Lease)
	if run == nil {
		return refuse(CodeLeaseLost, Problem{Final: true})
	}
	run.until = time.Time{}
	if run.state == RunRunning {
		run.state = RunReady
	}
	f.expire(run)
	return 200, LeaseAnswer{State: run.state}
}

func (f *fake) closeRun(r *http.Request, body []byte) (int, any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	in := parse[CloseRequest](body)
	run := f.holder(r.PathValue("run"), in.Lease)
	if run == nil {
		return refuse(CodeLeaseLost, Problem{Final: true})
	}
	for _, e := range f.byID {
		if e.run == run && (e.state == "in_flight" || e.state == "interrupted") {
			return refuse(CodeEffectOpen, Problem{Retryable: true, RetryAction: RetryPoll})
		}
	}
	run.state = in.Outcome
	return 200, LeaseAnswer{State: run.state}
}

func (f *fake) read(r *http.Request, _ []byte) (int, any) {
	wait, _ := time.ParseDuration(r.URL.Query().Get("wait"))
	over := time.After(wait)
	for {
		f.mu.Lock()
		run, moved := f.runs[r.PathValue("run")], f.moved
		state := ""
		if run != nil {
			state = run.state
		}
		f.mu.Unlock()
		switch {
		case run == nil:
			return 404, &Problem{Code: CodeNotFound, Status: 404}
		case state != RunPaused:
			return 200, RunView{RunID: run.id, State: state}
		}
		select {
		case <-moved:
		case <-over:
			return 200, RunView{RunID: run.id, State: state}
		case <-r.Context().Done():
			return 200, nil
		}
	}
}

func (f *fake) save(r *http.Request, body []byte) (int, any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	in := parse[SaveCheckpoint](body)
	run := f.holder(r.PathValue("run"), in.Lease)
	if run == nil {
		return refuse(CodeLeaseLost, Problem{Final: true})
	}
	var turn int64
	_, _ = fmt.Sscan(r.PathValue("turn"), &turn)
	run.saved = &Checkpoint{Turn: turn, State: in.State, Occurrences: in.Occurrences}
	return 204, nil
}

func (f *fake) checkpoint(r *http.Request, _ []byte) (int, any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return 200, f.runs[r.PathValue("run")].saved
}
