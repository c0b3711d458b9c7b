package logs

import (
	"context"
	"errors"
	"strings"
	"time"

	"quittance/ledger/logfiles"
	"quittance/reconcile/effects"
	"quittance/reconcile/logfile"
)

const (
	pollEvery   = 500 * time.Millisecond
	policyEvery = 5 * time.Second
	// wholeEvery is how often everything that was read is compared again; before each line
	// that is appended it is anyhow.
	wholeEvery = 10 * time.Minute
	// tornAfter is how long an unfinished last line stands still before it counts as cut
	// off. An agent writes a line at once.
	tornAfter = 5 * time.Second
	// appendAtOnce is how many lines are appended under one lock.
	appendAtOnce = 100
)

// Follow reads the file as it grows and appends what is decided, until ctx ends. What
// goes wrong is logged and tried again; an error is returned only for a file that can
// never be read.
func (r *Reader) Follow(ctx context.Context, report func(effects.LogReport)) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var said string
	whole, rules := time.Now(), time.Now()
	for {
		err := r.Round(ctx, report)
		if format, ok := errors.AsType[*logfile.FormatError](err); ok {
			return format
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			said = ""
		case err.Error() != said:
			said = err.Error()
			r.log.Error("the log file is not followed now; it is tried again", "path", r.path, "error", err)
		}
		if time.Since(whole) > wholeEvery {
			whole = time.Now()
			_ = r.Close()
		}
		if time.Since(rules) > policyEvery {
			rules = time.Now()
			if err := r.engine.Rejoin(ctx); err != nil && ctx.Err() == nil {
				r.log.Error("the policy in force could not be read; the one before stays", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Round reads what is new, appends what is decided, and reads that back.
func (r *Reader) Round(ctx context.Context, report func(effects.LogReport)) error {
	for range 10 {
		if err := r.hear(ctx, report); err != nil {
			return err
		}
		wrote, err := r.answer(ctx)
		if err != nil || !wrote {
			return err
		}
	}
	return nil
}

// hear reads what is new.
func (r *Reader) hear(ctx context.Context, report func(effects.LogReport)) error {
	if r.quiet() {
		return nil
	}
	got, err := r.read(ctx, false)
	report(got)
	if errors.Is(err, logfile.ErrGone) {
		return nil // a rotation is under way, or the agent has not written yet
	}
	return err
}

// quiet tells whether nothing has happened to the file since it was read to its end, nor
// to the one before it.
func (r *Reader) quiet() bool {
	if r.file == nil || !r.file.Same() {
		return false
	}
	return r.still() && (r.before == nil || r.before.still())
}

// answer appends the decisions that wait. A line is in the outbox before it is in the
// file, and counts as appended once it was read back: what a killed process leaves is
// found by reading, and no line is written twice.
func (r *Reader) answer(ctx context.Context) (wrote bool, err error) {
	if r.file == nil {
		return false, nil
	}
	if err := r.engine.CarryLog(ctx, r.id); err != nil {
		return false, err
	}
	pending, err := logfiles.Pending(ctx, r.db, r.id, appendAtOnce)
	if err != nil || len(pending) == 0 {
		return false, err
	}
	if r.torn.size > 0 && !r.torn.told {
		return false, nil // it may still be being written
	}
	var lines strings.Builder
	for _, p := range pending {
		lines.WriteString(p.Line)
	}
	err = logfile.Append(ctx, r.path, r.file.Place(), r.torn.size, []byte(lines.String()), r.stillOurs)
	_, changed := errors.AsType[*logfile.Alarm](err)
	switch {
	case errors.Is(err, logfile.ErrUnread):
		return true, r.Close() // read it first
	case errors.Is(err, logfile.ErrGone):
		return false, nil
	case changed:
		_ = r.Close()
		return true, nil // reading raises the alarm, unless the file was rotated
	case err != nil:
		return false, err
	}
	return true, nil
}

// stillOurs is asked under the file's lock, when nobody else can be writing for us.
func (r *Reader) stillOurs(ctx context.Context) error {
	g, err := logfiles.Get(ctx, r.db, r.id)
	if err != nil {
		return err
	}
	if g.Alarm != 0 {
		return effects.ErrLogAlarm
	}
	part, _, err := logfiles.LastPart(ctx, r.db, r.id)
	if err != nil {
		return err
	}
	if part.ID != r.part.ID || part.ReadTo != r.part.ReadTo {
		return logfile.ErrUnread
	}
	return nil
}
