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
	engine  *effects.Engine
	db      *ledger.DB
	log     *slog.Logger
	path    string
	id      int64
	resting bool // nobody writes the file at present

	stretch           // file is nil: to be opened, and looked at as a whole
	before  *stretch  // the file that the present one was rotated from, while it is there: somebody may still write to it
	gone    time.Time // since when there has been no file where one was read
}

// stretch is one of the files that the log is made of, and how far it was read.
type stretch struct {
	file *logfile.File
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
	var err error
	for _, x := range []*stretch{&r.stretch, r.before} {
		if x != nil && x.file != nil {
			err = errors.Join(err, x.file.Close())
			x.file = nil
		}
	}
	return err
}

// Import reads the file to its end and takes it that nobody writes it now: intents
// without an outcome are interrupted at once. The error is a *logfile.FormatError for a
// file that holds no lines, [effects.ErrLogAlarm] for one that was changed.
func (r *Reader) Import(ctx context.Context) (effects.LogReport, error) {
	r.resting = true
	report, err := r.read(ctx, true)
	if err != nil {
		return report, err
	}
	return report, r.engine.RestLog(ctx, r.id)
}

// read reads everything that stands in the file, and in those it was rotated to. The
// torn last line counts as damaged when cutOff is set, or once it stood still.
func (r *Reader) read(ctx context.Context, cutOff bool) (report effects.LogReport, err error) {
	for moved := 0; ; {
		rotated, err := r.reach(ctx)
		if r.before != nil && (err == nil || errors.Is(err, logfile.ErrGone)) {
			if failed := r.rest(ctx, r.before, &report, cutOff); failed != nil {
				err = failed
			}
		}
		if err == nil {
			err = r.rest(ctx, &r.stretch, &report, cutOff || rotated)
		}
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
		// The old file is read; what stands behind it is the next one.
		if err := r.next(ctx); err != nil {
			return report, err
		}
	}
}

// begin adds a file of which nothing has been read, behind the part before. Files beside
// it that were written since are rotated ones that come before it.
func (r *Reader) begin(ctx context.Context, before logfiles.Part, since time.Time) (part logfiles.Part, err error) {
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
		part, err = logfiles.AddPart(ctx, tx, r.id, g.Generation, empty[:], since)
		return err
	})
	return part, err
}

func (r *Reader) next(ctx context.Context) error {
	before := r.part
	since, err := r.file.Written()
	if err := errors.Join(err, r.Close()); err != nil {
		return err
	}
	r.torn = tail{}
	r.log.Info("the log file was rotated; the next one is read from its beginning", "path", r.path)
	_, err = r.begin(ctx, before, since)
	return err
}

// rest reads what stands behind the place.
func (r *Reader) rest(ctx context.Context, x *stretch, report *effects.LogReport, cutOff bool) error {
	s, err := x.file.Lines()
	if err != nil {
		return err
	}
	for {
		c, err := spans(s)
		if err != nil {
			return err
		}
		from := x.part.ReadTo
		after := x.part
		after.ReadTo, after.Lines = s.At()
		after.Digest = s.Digest()
		x.watch(c.torn)
		if c.torn != nil && (cutOff || time.Since(x.torn.since) >= tornAfter) && !x.torn.told {
			c.spans = append(c.spans, *c.torn)
			x.torn.told = true
		}
		if after.ReadTo > from || len(c.spans) > 0 {
			part, err := r.engine.ReadLog(ctx, effects.LogLines{Log: r.id, From: from, After: after, Spans: c.spans})
			if err != nil {
				return err
			}
			report.Add(part)
			x.part = after
			if err := x.file.Advance(s); err != nil {
				return err
			}
		}
		if c.end {
			return nil
		}
	}
}

// watch remembers since when the last line has been unfinished.
func (x *stretch) watch(torn *effects.LogSpan) {
	switch {
	case torn == nil:
		x.torn = tail{}
	case x.torn.start != torn.Start || x.torn.size != torn.Size:
		x.torn = tail{torn.Size, torn.Start, time.Now(), false}
	}
}

// still tells whether nothing has been written behind what was read.
func (x *stretch) still() bool {
	size, err := x.file.Size()
	if err != nil || size != x.part.ReadTo+x.torn.size {
		return false
	}
	return x.torn.size == 0 || x.torn.told || time.Since(x.torn.since) < tornAfter
}
