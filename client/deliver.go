package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"sync"
	"time"
)

// ErrUnrecorded is returned beside an outcome that could neither be delivered nor be
// spooled: the call was made, and only its caller knows.
var ErrUnrecorded = errors.New("the outcome could neither be delivered nor be kept")

// deliver hands an outcome to the server. When the first try fails it is spooled
// before anything else, then tried for a while, then left to the background:
// delivered is false and err is nil.
func (c *Client) deliver(ctx context.Context, o spooled) (a FinishAnswer, delivered bool, err error) {
	o.Finish = c.fit(o.Finish)
	whole := o
	a, err = c.finish(ctx, &o)
	if err == nil {
		return a, true, nil
	}
	// A position is for a server that answers at once; a redelivery must be kept even
	// by one that was restored meanwhile.
	o.Finish.LogPosition, whole.Finish.LogPosition = "", ""
	// Also one that is refused is spooled, with the result that was left out of the
	// last try: the background sets it aside.
	name, unsaved := c.spool.save(whole)
	err = c.retry(ctx, c.finishWait, func(ctx context.Context) error {
		a, err = c.finish(ctx, &o)
		return err
	})
	switch {
	case err == nil:
		if unsaved == nil {
			// Left behind it is delivered once more, which changes nothing: no reason
			// for the caller to doubt the call.
			if err := c.spool.remove(name); err != nil {
				c.log.Warn("a delivered outcome stays in the spool", "file", name, "error", err)
			}
		}
		return a, true, nil
	case unsaved != nil:
		return a, false, fmt.Errorf("%w: %w; %w", ErrUnrecorded, unsaved, err)
	}
	c.log.Warn("an outcome waits in the spool", "run", o.RunID, "effect", o.EffectID, "error", err)
	c.deliverer.kick()
	return a, false, nil
}

// fit replaces a result that is too large by its size and digest.
func (c *Client) fit(f FinishRequest) FinishRequest {
	if len(f.Result) > c.maxResult {
		return omitResult(f)
	}
	return f
}

func omitResult(f FinishRequest) FinishRequest {
	if f.Result != nil {
		sum := sha256.Sum256(f.Result)
		f.ResultOmitted, f.ResultSize, f.ResultDigest = true, int64(len(f.Result)), hex.EncodeToString(sum[:])
		f.Result = nil
	}
	f.Error = nil
	return f
}

// errRejected marks an outcome that the server will never take as it is.
var errRejected = errors.New("the server refuses this outcome")

// finish sends an outcome once, and where what was sent is refused for its size or
// form, once more without result and error. nil means that the server has it: also
// when the fence is stale it is kept as evidence. o is changed to what was sent last.
func (c *Client) finish(ctx context.Context, o *spooled) (FinishAnswer, error) {
	a, err := c.send(ctx, o)
	p, ok := errors.AsType[*Problem](err)
	if !ok {
		return a, err
	}
	switch {
	case p.Code == CodeStaleFence, p.Status == http.StatusConflict && p.Final:
		return FinishAnswer{EffectID: o.EffectID, State: p.State, Version: p.Version, LogPosition: p.LogPosition}, nil
	case p.Status == http.StatusRequestEntityTooLarge, p.Status == http.StatusBadRequest, p.Status == http.StatusUnprocessableEntity:
		if o.Finish.Result == nil && o.Finish.Error == nil {
			return a, fmt.Errorf("%w: %w", errRejected, err)
		}
		o.Finish = omitResult(o.Finish)
		return c.finish(ctx, o)
	case p.Code == CodeNotFound:
		return a, fmt.Errorf("%w: %w", errRejected, err)
	}
	return a, err
}

// send names the effect by its id and, where the server does not know that (it was
// restored from a backup), by its key: then the outcome is kept without an intent.
func (c *Client) send(ctx context.Context, o *spooled) (a FinishAnswer, err error) {
	err = c.once(ctx, &request{method: http.MethodPost, path: "/v1/effects/" + escape(o.EffectID) + "/finish", in: o.Finish, out: &a})
	if p, ok := errors.AsType[*Problem](err); ok && p.Code == CodeNotFound {
		byKey := o.Finish
		byKey.RunID, byKey.Key = o.RunID, o.Key
		err = c.once(ctx, &request{method: http.MethodPost, path: "/v1/effects/finish", in: byKey, out: &a})
	}
	return a, err
}

// deliverer empties the spool in the background, while there is something in it.
type deliverer struct {
	c   *Client
	ctx context.Context
	end context.CancelFunc

	mu      sync.Mutex
	running bool
	more    bool // something was spooled since the folder was last listed
}

func newDeliverer(c *Client) *deliverer {
	ctx, end := context.WithCancel(context.Background())
	return &deliverer{c: c, ctx: ctx, end: end}
}

func (d *deliverer) stop() { d.end() }

// kick says that there is something in the spool: it starts the background delivery,
// or has the one that runs look once more before it ends.
func (d *deliverer) kick() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.more = true
	if d.running || d.ctx.Err() != nil {
		return
	}
	d.running = true
	go d.loop()
}

func (d *deliverer) loop() {
	for try := 0; ; try++ {
		d.mu.Lock()
		d.more = false
		d.mu.Unlock()
		left := d.once(d.ctx)
		d.mu.Lock()
		if left == 0 && !d.more || d.ctx.Err() != nil {
			d.running = false
			d.mu.Unlock()
			return
		}
		d.mu.Unlock()
		// Slower and slower, to half a minute: an outage may last for hours.
		sleep(d.ctx, backoff(try, time.Duration(min(try, 25))*time.Second))
	}
}

// flushTime bounds what opening a run spends on the outcomes of earlier processes.
const flushTime = 5 * time.Second

// flush delivers what earlier processes left, so that a run is opened with what is
// known, and leaves the rest to the background.
func (d *deliverer) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flushTime)
	defer cancel()
	if d.once(ctx) > 0 {
		d.kick()
	}
}

// once tries everything in the spool and returns how much is left.
func (d *deliverer) once(ctx context.Context) (left int) {
	names, err := d.c.spool.names()
	if err != nil {
		d.c.log.Error("couldn't list the spool", "error", err)
		return 0
	}
	for i, name := range names {
		switch err := d.one(ctx, name); {
		case err == nil:
		case errors.Is(err, ErrNoAnswer):
			return len(names) - i + left // the others would not get through either
		default:
			d.c.log.Warn("an outcome stays in the spool", "file", name, "error", err)
			left++
		}
	}
	return left
}

// one delivers one file and removes it, or sets it aside when it is refused.
func (d *deliverer) one(ctx context.Context, name string) error {
	s := d.c.spool
	o, err := s.load(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		d.c.log.Error("a spooled outcome can't be read and is set aside", "file", name, "error", err)
		return s.setAside(name)
	}
	whole := o
	_, err = d.c.finish(ctx, &o)
	refused := errors.Is(err, errRejected)
	if err != nil && !refused {
		return err
	}
	if refused || whole.Finish.Result != nil && o.Finish.Result == nil {
		// The server has less than is here: what is missing stays for a person.
		if err := s.reject(name, whole); err != nil {
			return err
		}
		d.c.log.Warn("an outcome was refused and is set aside", "file", name, "run", o.RunID, "effect", o.EffectID)
	}
	return s.remove(name)
}
