// Package jobs runs work later, on any server of the database, by River. A job is a
// name and an id; everything else is in tables of its own, so that a job which runs
// twice, late or on another server finds out by itself what is left to do. No safety
// rule hangs on it: it polls, and is rescued slowly.
package jobs

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"

	"quittance/ledger"
)

// args is the one kind of job that River sees.
type args struct {
	Name string `json:"name"`
	ID   string `json:"id"`
}

// Kind implements [river.JobArgs].
func (args) Kind() string { return "quittance" }

// Func does the work of a job with an id. It must be able to run again after it was
// cut off anywhere, and returns an error to be tried again later.
type Func func(ctx context.Context, id string) error

// Jobs hands work out and does it. Safe for concurrent use.
type Jobs struct {
	client *river.Client[*sql.Tx]
}

const (
	// poll is how late a job may start: River cannot listen through lib/pq.
	poll = 500 * time.Millisecond
	// jobTimeout ends a job that hangs; what is left of it is done by its next try.
	jobTimeout = 10 * time.Minute
	// rescueAfter is when a job of a server that died is taken up by another.
	rescueAfter = 30 * time.Second
	// atOnce keeps jobs from taking all connections.
	atOnce = 2
)

// New makes a runner; funcs are by name.
func New(db *ledger.DB, log *slog.Logger, funcs map[string]Func) (*Jobs, error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{funcs: funcs})
	client, err := river.NewClient(riverdatabasesql.New(db.Pool()), &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: atOnce}}, Workers: workers, Logger: log,
		FetchPollInterval: poll, FetchCooldown: poll / 5, JobTimeout: jobTimeout, RescueStuckJobsAfter: jobTimeout + rescueAfter,
	})
	if err != nil {
		return nil, fmt.Errorf("couldn't set up the jobs: %w", err)
	}
	return &Jobs{client}, nil
}

// Later hands out a job with the transaction: it exists exactly if that commits.
func (j *Jobs) Later(ctx context.Context, tx *ledger.Tx, name, id string) error {
	if _, err := j.client.InsertTx(ctx, tx.Raw(), args{name, id}, nil); err != nil {
		return fmt.Errorf("couldn't hand out a job: %w", err)
	}
	return nil
}

// Run does jobs until ctx ends, and then lets those under way stop.
func (j *Jobs) Run(ctx context.Context) error {
	if err := j.client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("couldn't start the jobs: %w", err)
	}
	<-ctx.Done()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return j.client.StopAndCancel(stop)
}

type worker struct {
	river.WorkerDefaults[args]
	funcs map[string]Func
}

func (w *worker) Work(ctx context.Context, job *river.Job[args]) error {
	f := w.funcs[job.Args.Name]
	if f == nil {
		return fmt.Errorf("no work is called %q", job.Args.Name)
	}
	return f(ctx, job.Args.ID)
}

// NextRetry keeps a failed job close: somebody waits for it.
func (w *worker) NextRetry(job *river.Job[args]) time.Time {
	return time.Now().Add(min(time.Minute, time.Second<<min(job.Attempt, 6)))
}
