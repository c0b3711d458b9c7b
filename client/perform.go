package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Call is what a tool needs to know to perform one attempt.
type Call struct {
	EffectID  string
	Key       string
	VendorKey string // the vendor's own idempotency key; the same for every attempt
	Arguments json.RawMessage
	Attempt   int // from 1
	// Deadline is when the call must have been sent by, on this process's monotonic
	// clock, and on the wall's: whichever says so first. The context given beside it ends
	// then by the monotonic one.
	Deadline time.Time
}

// Ready is nil while the call may still be sent. A tool that prepares for long asks
// again immediately before it sends.
func (c Call) Ready() error {
	now := time.Now()
	if passed(c.Deadline, now, now) {
		return fmt.Errorf("%s: %w", c.EffectID, ErrTooLate)
	}
	return nil
}

// passed tells whether a deadline has passed by either clock. The monotonic one stands
// still while the machine sleeps, the wall's may be set back.
func passed(deadline, monotonic, wall time.Time) bool {
	return !monotonic.Before(deadline) || !wall.Round(0).Before(deadline.Round(0))
}

// ErrTooLate means that a call was not sent because its deadline had passed.
var ErrTooLate = errors.New("the deadline passed before the call was sent")

// Perform does the dangerous thing, once. What it returns is recorded and replayed:
// a result that marshals to JSON, or one from [Reference]. An error means that
// nobody knows whether it happened, unless it is from [Refused].
type Perform func(ctx context.Context, call Call) (result any, err error)

// Reference returns a result together with the downstream's own name for what
// happened, such as its payment id: the proof by which it can be found again.
func Reference(reference string, result any) any {
	return referenced{reference, result}
}

type referenced struct {
	reference string
	result    any
}

// Refused marks a definite refusal by the downstream: nothing happened and nothing
// will. reason is an error, or a value that marshals to JSON and is replayed as it is.
func Refused(reason any) error {
	if err, ok := reason.(error); ok {
		return &RefusedError{Reason: message(err), cause: err}
	}
	raw, err := rawJSON(reason)
	if err != nil {
		raw = message(err)
	}
	return &RefusedError{Reason: raw}
}

// RefusedError is a call that failed definitely, now or when it was first made: it did
// not take effect, and it is replayed as a failure.
type RefusedError struct {
	Reason   json.RawMessage
	Replayed bool
	cause    error
}

func (e *RefusedError) Error() string { return "refused: " + string(e.Reason) }

// Unwrap is the tool's own error; nil when the refusal was replayed.
func (e *RefusedError) Unwrap() error { return e.cause }

// message is how an error is recorded.
func message(err error) json.RawMessage {
	raw, _ := json.Marshal(map[string]string{"message": err.Error()})
	return raw
}

// report is what became of a performed call.
type report struct {
	outcome   string
	result    json.RawMessage
	problem   json.RawMessage
	reference string
	err       error // what perform returned
}

// errNoReturn is recorded for a panic or an exit of the goroutine. The panic's value
// is not: it may hold anything.
var errNoReturn = errors.New("the call did not return: it panicked, or its goroutine ended")

// run calls perform and says what became of it, whatever happens in it; record is
// called exactly once. A panic goes on after it was recorded.
func (p Perform) run(ctx context.Context, call Call, record func(report)) {
	returned := false
	defer func() {
		if !returned {
			record(inDoubt(errNoReturn))
		}
	}()
	result, err := p(ctx, call)
	returned = true
	record(judge(result, err))
}

func judge(result any, err error) report {
	if err != nil {
		if refusal, ok := errors.AsType[*RefusedError](err); ok {
			return report{outcome: OutcomeFailed, problem: refusal.Reason, err: err}
		}
		return inDoubt(err)
	}
	r := report{outcome: OutcomeTaken}
	if ref, ok := result.(referenced); ok {
		r.reference, result = ref.reference, ref.result
	}
	raw, err := rawJSON(result)
	if err != nil {
		// It happened; that its result cannot be written down changes nothing.
		raw = message(fmt.Errorf("couldn't write the result down: %w", err))
	}
	r.result = raw
	return r
}

// inDoubt reports an error after which nobody knows, unless the tool found in time
// that it was too late to send: a word of its own says so to whoever decides.
func inDoubt(err error) report {
	r := report{outcome: OutcomeUnknown, problem: message(err), err: err}
	if errors.Is(err, ErrTooLate) {
		r.outcome = outcomeNotSent
	}
	return r
}

// outcomeNotSent is unknown to the server's rules, like every word that is neither
// taken nor failed, and tells a person what happened.
const outcomeNotSent = "not_sent"

// rawJSON is v as JSON; raw JSON is taken as it is, if it is JSON.
func rawJSON(v any) (json.RawMessage, error) {
	switch v := v.(type) {
	case json.RawMessage:
		return checked(v)
	case []byte:
		return checked(v)
	}
	return marshal(v)
}

func checked(raw []byte) (json.RawMessage, error) {
	if raw == nil {
		return json.RawMessage("null"), nil
	}
	if !json.Valid(raw) {
		return nil, errors.New("it is not JSON")
	}
	return bytes.Clone(raw), nil
}
