package logs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"quittance/ledger/logfiles"
	"quittance/reconcile/effects"
	"quittance/reconcile/logfile"
)

// goneAfter is how long there may be no file where one was read: a rotation takes its name
// away for a moment. Later it was removed, and nobody knows what was written to it last.
const goneAfter = 5 * time.Second

// knownRotations is how many of the files that were read before are told from unread ones:
// more than are ever kept with one time of writing.
const knownRotations = 20

// reach opens the file that is to be read on, unless it is open.
func (r *Reader) reach(ctx context.Context) (rotated bool, err error) {
	if r.file != nil {
		if r.file.Same() {
			return false, nil
		}
		if err := r.Close(); err != nil {
			return false, err
		}
	}
	g, err := logfiles.Get(ctx, r.db, r.id)
	if err != nil {
		return false, err
	}
	if g.Alarm != 0 {
		return false, effects.ErrLogAlarm
	}
	part, known, err := logfiles.LastPart(ctx, r.db, r.id)
	if err == nil && !known {
		part, err = r.begin(ctx, logfiles.Part{}, logfile.History(r.path))
	}
	if err != nil {
		return false, err
	}
	before, err := logfiles.PartsBefore(ctx, r.db, part, knownRotations)
	if err != nil {
		return false, err
	}
	r.keepBefore(before)
	if r.part.ID != part.ID {
		r.torn = tail{}
	}
	file, rotated, err := r.open(ctx, part, before)
	if alarm := r.alarmOf(part, err); alarm != nil {
		if err := r.engine.AlarmLog(ctx, r.id, alarm); err != nil {
			return false, err
		}
		return false, fmt.Errorf("%w: %w", effects.ErrLogAlarm, alarm)
	}
	if err != nil {
		return false, err
	}
	r.gone = time.Time{}
	head, err := file.Head()
	if err == nil && part.ReadTo == 0 {
		err = logfile.CheckHead(head)
	}
	if err != nil {
		return false, errors.Join(err, file.Close())
	}
	r.file, r.part = file, part
	r.part.Identity = file.Place().Identity
	return rotated, nil
}

// keepBefore keeps the file that the present one was rotated from open, while it is there:
// an agent that has not noticed yet goes on writing to it.
func (r *Reader) keepBefore(before []logfiles.Part) {
	was := r.before
	r.before = nil
	if was != nil && was.file != nil {
		if len(before) > 0 && was.part.ID == before[0].ID {
			r.before = was
			return
		}
		_ = was.file.Close()
	}
	if len(before) == 0 || before[0].ReadTo == 0 {
		return
	}
	part := before[0]
	if file := logfile.Found(r.path, place(part)); file != nil {
		r.before = &stretch{file: file, part: part}
		if was != nil && was.part.ID == part.ID {
			r.before.torn = was.torn
		}
	}
}

// open opens the file of a part. Of one that was not begun it looks first whether a file
// was rotated away unread: several may have been between two looks.
func (r *Reader) open(ctx context.Context, part logfiles.Part, before []logfiles.Part) (file *logfile.File, rotated bool, err error) {
	if part.ReadTo == 0 && !part.Since.IsZero() {
		others, err := logfiles.OtherPaths(ctx, r.db, r.id)
		if err != nil {
			return nil, false, err
		}
		read := make([]logfile.Place, len(before))
		for i, p := range before {
			read[i] = place(p)
		}
		file, err = logfile.Between(r.path, part.Since.Time, read, others)
		if file != nil || err != nil {
			return file, file != nil, err
		}
	}
	return logfile.Open(r.path, place(part))
}

// alarmOf says whether a file that could not be opened was changed.
func (r *Reader) alarmOf(part logfiles.Part, err error) *logfile.Alarm {
	if alarm, ok := errors.AsType[*logfile.Alarm](err); ok {
		return alarm
	}
	if !errors.Is(err, logfile.ErrGone) || part.ReadTo == 0 {
		return nil
	}
	if r.gone.IsZero() {
		r.gone = time.Now()
	}
	if !r.resting && time.Since(r.gone) < goneAfter {
		return nil
	}
	return &logfile.Alarm{Kind: "removed", Detail: fmt.Sprintf("%d bytes were read from it, and there is no file", part.ReadTo)}
}

func place(p logfiles.Part) logfile.Place {
	return logfile.Place{ReadTo: p.ReadTo, Lines: p.Lines, Digest: p.Digest, Identity: p.Identity}
}
