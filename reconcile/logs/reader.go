package logs

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"quittance/ledger"
	"quittance/ledger/logfiles"
	"quittance/reconcile/effects"
	"quittance/reconcile/logfile"
)

// Options name a log file and whose it is.
type Options struct {
	Account int64
	Path    string
	Agent   string // under which its runs are shown; "" is the file's name
	Run     string // of lines that name none; "" is the file's path
}

// Reader reads one log file on behalf of one account. Not for concurrent use; several
// of them on one file, in several processes too, never count a line twice.
type Reader struct {
	engine *effects.Engine
	db     *ledger.DB
	log    *slog.Logger
	path   string
	id     int64

	file *logfile.File // nil: to be opened, and looked at as a whole
	part logfiles.Part
	torn tail
}

// tail is an unfinished last line: since when it has stood as it stands.
type tail struct {
	size  int64
	start int64
	since time.Time
	told  bool // it counts as cut off
}

// Open finds or adds the log file.
func Open(ctx context.Context, engine *effects.Engine, db *ledger.DB, log *slog.Logger, o Options) (*Reader, error) {
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return nil, fmt.Errorf("couldn't name the log file: %w", err)
	}
	if o.Agent == "" {
		o.Agent = filepath.Base(path)
	}
	if o.Run == "" {
		o.Run = path
	}
	id, err := engine.OpenLog(ctx, o.Account, path, o.Agent, o.Run)
	if err != nil {
		return nil, err
	}
	return &Reader{engine: engine, db: db, log: log, path: path, id: id}, nil
}

// Close releases the file.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	f := r.file
	r.file = nil
	return f.Close()
}

// Import reads the file to its end and takes it that nobody writes it now: intents
// without an outcome are interrupted at once. The error is a *logfile.FormatError for a
// file that holds no lines, [effects.ErrLogAlarm] for one that was changed.
func (r *Reader) Import(ctx context.Context) (effects.LogReport, error) {
	report, err := r.read(ctx, true)
	if err != nil {
		return report, err
	}
	return report, r.engine.RestLog(ctx, r.id)
}

// read reads everything that stands in the file, and in those it was rotated to. The
// torn last line counts as damaged when cutOff is set.
func (r *Reader) read(ctx context.Context, cutOff bool) (report effects.LogReport, err error) {
	for moved := 0; ; {
		rotated, err := r.reach(ctx)
		if err != nil {
			return report, err
		}
		err = r.rest(ctx, &report, cutOff || rotated)
		if errors.Is(err, logfiles.ErrMoved) && moved < 100 {
			moved++
			if err := r.Close(); err != nil {
				return report, err
			}
			continue
		}
		if err != nil || !rotated {
			return report, err
		}
		// The old file is read; what stands at its path now is the next one.
		if err := r.next(ctx); err != nil {
			return report, err
		}
	}
}

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
	if err != nil {
		return false, err
	}
	place := logfile.Place{ReadTo: part.ReadTo, Lines: part.Lines, Digest: part.Digest, Identity: part.Identity}
	file, rotated, err := logfile.Open(r.path, place)
	if alarm, ok := errors.AsType[*logfile.Alarm](err); ok {
		if err := r.engine.AlarmLog(ctx, r.id, alarm); err != nil {
			return false, err
		}
		return false, fmt.Errorf("%w: %w", effects.ErrLogAlarm, alarm)
	}
	if err != nil {
		return false, err
	}
	head, err := file.Head()
	if err == nil && place.ReadTo == 0 {
		err = logfile.CheckHead(head)
	}
	if err == nil && !known {
		part, err = r.begin(ctx, logfiles.Part{})
	}
	if err != nil {
		return false, errors.Join(err, file.Close())
	}
	r.file, r.part = file, part
	r.part.Identity = file.Place().Identity
	return rotated, nil
}

// begin adds a file of which nothing has been read, behind the part before.
func (r *Reader) begin(ctx context.Context, before logfiles.Part) (part logfiles.Part, err error) {
	empty := sha256.Sum256(nil)
	err = r.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		g, err := logfiles.Lock(ctx, tx, r.id)
		if err != nil {
			return err
		}
		last, ok, err := logfiles.LastPart(ctx, tx, r.id)
		if err != nil {
			return err
		}
		if ok && last.ID != before.ID { // somebody else has begun it
			part = last
			return nil
		}
		part, err = logfiles.AddPart(ctx, tx, r.id, g.Generation, empty[:], "")
		return err
	})
	return part, err
}

func (r *Reader) next(ctx context.Context) error {
	before := r.part
	if err := r.Close(); err != nil {
		return err
	}
	r.torn = tail{}
	r.log.Info("the log file was rotated; the next one is read from its beginning", "path", r.path)
	_, err := r.begin(ctx, before)
	return err
}

// rest reads what stands behind the place.
func (r *Reader) rest(ctx context.Context, report *effects.LogReport, cutOff bool) error {
	s, err := r.file.Lines()
	if err != nil {
		return err
	}
	for {
		c, err := spans(s)
		if err != nil {
			return err
		}
		from := r.part.ReadTo
		after := r.part
		after.ReadTo, after.Lines = s.At()
		after.Digest = s.Digest()
		r.watch(c.torn)
		if c.torn != nil && cutOff {
			c.spans = append(c.spans, *c.torn)
			r.torn.told = true
		}
		if after.ReadTo > from || len(c.spans) > 0 {
			part, err := r.engine.ReadLog(ctx, effects.LogLines{Log: r.id, From: from, After: after, Spans: c.spans})
			if err != nil {
				return err
			}
			report.Add(part)
			r.part = after
			if err := r.file.Advance(s); err != nil {
				return err
			}
		}
		if c.end {
			return nil
		}
	}
}

// watch remembers since when the last line has been unfinished.
func (r *Reader) watch(torn *effects.LogSpan) {
	switch {
	case torn == nil:
		r.torn = tail{}
	case r.torn.start != torn.Start || r.torn.size != torn.Size:
		r.torn = tail{torn.Size, torn.Start, time.Now(), false}
	}
}
