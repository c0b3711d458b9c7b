package effects

import (
	"time"
)

// Code names a refusal, in the words of the HTTP contract.
type Code string

const (
	CodeInFlight    Code = "effect_in_flight"
	CodeRunPaused   Code = "run_paused"
	CodeRunHeld     Code = "run_held"
	CodeRunClosed   Code = "run_closed"
	CodeRunOpen     Code = "effect_open" // close: an effect is still open
	CodeLeaseLost   Code = "lease_lost"
	CodeConflict    Code = "conflict"
	CodeCancelled   Code = "effect_cancelled"
	CodeStaleFence  Code = "stale_fence"
	CodeDecided     Code = "decided"
	CodeStale       Code = "stale"
	CodeLogBehind   Code = "log_behind"
	CodeNotFound    Code = "not_found"
	CodeForbidden   Code = "forbidden"
	CodeTooLarge    Code = "too_large"          // 413: Detail says the limit
	CodeInvalid     Code = "invalid"            // 422: well-formed but not acceptable; Pointer says where
	CodeNotAllowed  Code = "not_allowed"        // the verdict does not fit the effect's state
	CodeNoLookup    Code = "no_lookup"          // the tool has none
	CodeLookupOver  Code = "lookup_over"        // the question is not the caller's any more
	CodeUnsigned    Code = "unsigned"           // 401: an event that no secret of its inbox signed
	CodeNoteMissing Code = "note_missing"       // a person's decision needs a note
	CodeDamaged     Code = "checkpoint_damaged" // none that is kept is what was saved
	CodeSecondWaits Code = "second_waiting"     // another verdict waits for a second person: confirm it or send it back
)

// Refusal is the answer that is not the one asked for; it implements error. Its
// members are what a program needs to act, and never hold a body or a secret.
type Refusal struct {
	Code    Code
	Detail  string // one plain sentence
	Pointer string // JSON pointer of the offending member, for CodeInvalid

	RunID       string
	EffectID    string
	State       string // state of the effect or run now
	Version     int64
	Reason      string        // CodeConflict: "request"
	HeldBy      string        // CodeRunHeld: the worker that holds the lease
	RetryAfter  time.Duration // 0: none
	WaitingFor  []Waiting     // CodeRunPaused
	Decided     *Decided      // CodeDecided, CodeCancelled
	LogPosition string
}

func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Detail }

// Waiting is one thing that keeps a run paused. Reason: "interrupted", "held",
// "contradicted", or "releasing" for a decision whose hold is not over.
type Waiting struct {
	EffectID  string
	Reason    string
	Tool      string
	ReleaseAt time.Time // zero unless Reason is "releasing"
}

// Decided says who closed an effect, when, how and why.
type Decided struct {
	By      string // "agent" | "late_agent" | "look_up" | "vendor_key" | "person" | "run_closed"
	Person  string // name, when By is "person"
	At      time.Time
	Verdict string
	Note    string
}

// refusal is an answer about an effect that stands in another way than the caller
// took it to stand.
func (x *effect) refusal(code Code, detail string) *Refusal {
	return &Refusal{Code: code, EffectID: x.ID, RunID: x.run.RunID, State: string(x.State), Version: x.Version, Detail: detail}
}

func (x *effect) stale() *Refusal {
	return x.refusal(CodeStale, "The effect has changed since this version was read. Look again before you decide.")
}

func (r *run) refusal(code Code, detail string) *Refusal {
	return &Refusal{Code: code, RunID: r.RunID, State: string(r.State), Detail: detail}
}

func noRun(runID string) *Refusal {
	return &Refusal{Code: CodeNotFound, RunID: runID, Detail: "There is no such run."}
}

func noEffect() *Refusal { return &Refusal{Code: CodeNotFound, Detail: "There is no such effect."} }

func noteMissing(pointer, detail string) *Refusal {
	return &Refusal{Code: CodeNoteMissing, Pointer: pointer, Detail: detail}
}
