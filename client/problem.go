package client

import (
	"errors"
	"fmt"
)

// The codes a program may branch on. Texts can change freely; these cannot.
const (
	CodeMalformed       = "malformed"          // 400: not JSON, or not the JSON that is allowed here
	CodeUnauthorized    = "unauthorized"       // 401
	CodeForbidden       = "forbidden"          // 403
	CodeNotFound        = "not_found"          // 404; another account's things look absent
	CodeRunHeld         = "run_held"           // 409: another process holds the run
	CodeRunPaused       = "run_paused"         // 409: something must be decided first
	CodeRunClosed       = "run_closed"         // 409
	CodeLeaseLost       = "lease_lost"         // 409: this process no longer acts for the run
	CodeLogBehind       = "log_behind"         // 409: the server was restored from an older backup
	CodeInFlight        = "effect_in_flight"   // 409: another attempt is under way
	CodeConflict        = "conflict"           // 409: the same key for another request
	CodeCancelled       = "effect_cancelled"   // 409: must never run
	CodeStaleFence      = "stale_fence"        // 409: kept as evidence, the state is another
	CodeEffectOpen      = "effect_open"        // 409: a run with an open effect cannot be closed
	CodeDecided         = "decided"            // 409: somebody else decided otherwise
	CodeStale           = "stale"              // 409: the effect moved on since it was looked at
	CodeTooLarge        = "too_large"          // 413
	CodeUnsupportedType = "unsupported_type"   // 415
	CodeInvalid         = "invalid"            // 422: unknown or wrong fields, all of them listed
	CodeAmbiguous       = "ambiguous"          // 422: does not name one effect
	CodeNotAllowed      = "not_allowed"        // 409: the verdict does not fit the effect's state
	CodeNoteMissing     = "note_missing"       // 422: a decision needs a note
	CodeSecondWaiting   = "second_waiting"     // 409: another verdict waits for a second person
	CodeDamaged         = "checkpoint_damaged" // 409: none that is kept is what was saved
	CodeNoLookup        = "no_lookup"          // 501: the tool has none
	CodeLookupOver      = "lookup_over"        // 409: the question is not this worker's any more
	CodeUnsigned        = "unsigned"           // 401: no secret of the inbox signed the event
	CodeUnavailable     = "unavailable"        // 503, or no answer that can be understood
)

// The values of Problem.RetryAction: what a program should do next.
const (
	RetrySame      = "retry_same" // the same request again, with the same ids
	RetryPoll      = "poll"       // ask at Poll
	RetryWait      = "wait"       // wait RetryAfter seconds, then the same again
	RetryNewIntent = "new_intent" // this one is over; a new one is another call
	RetryHuman     = "human"      // a person must act
	RetryAbandon   = "abandon"    // never again
)

// Problem is a refusal as an RFC 9457 problem document. It never repeats what was
// sent. Errors returned by this package wrap one wherever the server answered.
type Problem struct {
	Type   string `json:"type,omitempty"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`

	Code        string `json:"code" doc:"For programs to branch on."`
	Reason      string `json:"reason,omitempty" doc:"Tells apart what shares a code."`
	Retryable   bool   `json:"retryable" doc:"The same request may succeed later."`
	RetryAction string `json:"retry_action,omitempty" enum:"retry_same,poll,wait,new_intent,human,abandon"`
	RetryAfter  int    `json:"retry_after,omitempty" doc:"Whole seconds, equal to the Retry-After header."`
	Poll        string `json:"poll,omitempty" doc:"Where to ask."`
	Final       bool   `json:"final" doc:"The answer will never be another."`

	EffectID   string       `json:"effect_id,omitempty"`
	RunID      string       `json:"run_id,omitempty"`
	State      string       `json:"state,omitempty" doc:"Where the effect or run stands now."`
	Version    int64        `json:"version,omitempty" doc:"The current version."`
	HeldBy     *HeldBy      `json:"held_by,omitempty"`
	WaitingFor []WaitingFor `json:"waiting_for,omitempty"`
	Decided    *Decided     `json:"decided,omitempty"`

	PaymentID string `json:"payment_id,omitempty"`
	OrderID   string `json:"order_id,omitempty"`

	Errors    []FieldError `json:"errors,omitempty" doc:"Every field that is wrong."`
	Offset    *int64       `json:"offset,omitempty" doc:"The byte of the body where it stops making sense."`
	Pointer   string       `json:"pointer,omitempty" doc:"The same place as a JSON pointer."`
	Limit     int64        `json:"limit,omitempty" doc:"The limit that was passed."`
	RequestID string       `json:"request_id,omitempty"`

	LogPosition string `json:"log_position,omitempty"`
}

// FieldError says what is wrong with one field, without its value.
type FieldError struct {
	Pointer string `json:"pointer" doc:"A JSON pointer into the body."`
	Detail  string `json:"detail"`
}

// Error gives the code and the sentence.
func (p *Problem) Error() string {
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	if len(p.Errors) > 0 {
		text = fmt.Sprintf("%s %s: %s", text, p.Errors[0].Pointer, p.Errors[0].Detail)
	}
	return fmt.Sprintf("%s (%d): %s", p.Code, p.Status, text)
}

// The refusals an agent branches on. A [Problem] is one of them when its code says
// so: errors.Is(err, client.ErrLeaseLost).
var (
	ErrPaused     = errors.New("the run is paused: something must be decided first")
	ErrLeaseLost  = errors.New("the lease is lost: this process no longer acts for the run")
	ErrRunHeld    = errors.New("another process holds the run")
	ErrRunClosed  = errors.New("the run is closed")
	ErrLogBehind  = errors.New("the server's log is behind what this agent has seen")
	ErrConflict   = errors.New("the key belongs to another request")
	ErrCancelled  = errors.New("the effect was cancelled and must never run")
	ErrInFlight   = errors.New("another attempt of this effect is under way")
	ErrStaleFence = errors.New("the attempt is not the current one; the finish is kept as evidence")
	ErrStale      = errors.New("the effect moved on since it was looked at")
	ErrDecided    = errors.New("the effect is already decided")
	ErrNotFound   = errors.New("not found")
)

var sentinels = map[string]error{
	CodeRunPaused:  ErrPaused,
	CodeLeaseLost:  ErrLeaseLost,
	CodeRunHeld:    ErrRunHeld,
	CodeRunClosed:  ErrRunClosed,
	CodeLogBehind:  ErrLogBehind,
	CodeConflict:   ErrConflict,
	CodeCancelled:  ErrCancelled,
	CodeInFlight:   ErrInFlight,
	CodeStaleFence: ErrStaleFence,
	CodeStale:      ErrStale,
	CodeDecided:    ErrDecided,
	CodeNotFound:   ErrNotFound,
}

// Is makes errors.Is work with the sentinels above.
func (p *Problem) Is(target error) bool {
	s, ok := sentinels[p.Code]
	return ok && s == target
}
