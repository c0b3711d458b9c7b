package client

import (
	"encoding/json"
	"time"
)

// Times are RFC 3339 in UTC with at most microseconds and come from the database's
// clock. Raw messages hold exactly the bytes that were sent.

// Context is what an agent may tell a person about a call. It is shown as a claim
// and is never part of the key.
type Context struct {
	Labels map[string]string `json:"labels,omitempty" doc:"Free labels, shown and searchable."`
	Trace  string            `json:"trace,omitempty" doc:"Where the agent's own trace of this call is found."`
	Why    string            `json:"why,omitempty" doc:"Why the agent makes this call, in its own words."`
	DueAt  *time.Time        `json:"due_at,omitempty" doc:"When the action is wanted at the latest."`
}

// BeginRequest records an intent before it is performed.
type BeginRequest struct {
	RunID       string          `json:"run_id" doc:"The run; at most 512 bytes."`
	Lease       string          `json:"lease" doc:"The secret token of the lease."`
	AttemptID   string          `json:"attempt_id" doc:"Chosen by the caller; the same one again gets the same answer again."`
	Tool        string          `json:"tool" doc:"The tool's name; at most 256 bytes."`
	Arguments   json.RawMessage `json:"arguments" doc:"The call's arguments: an object, never a JSON string."`
	Occurrence  int             `json:"occurrence,omitempty" doc:"The n-th identical call of this run; 1 when absent."`
	Key         string          `json:"key,omitempty" doc:"A key minted by the client; within its run it replaces arguments and occurrence as the identity; the arguments must be the same each time."`
	CallID      string          `json:"call_id,omitempty" doc:"The provider's tool-call id: a note, never part of the key."`
	ClientTime  *time.Time      `json:"client_time,omitempty" doc:"The caller's own clock: shown as a claim."`
	Context     *Context        `json:"context,omitempty"`
	LogPosition string          `json:"log_position,omitempty" doc:"The last position an answer gave."`
}

// The values of BeginAnswer.Do.
const (
	DoProceed = "proceed" // perform it now, before the deadline
	DoReplay  = "replay"  // do not perform it: this is what became of it
	DoPass    = "pass"    // the policy says that the tool has no effect: nothing is recorded
)

// BeginAnswer says whether to perform the call or what became of it.
type BeginAnswer struct {
	Do       string `json:"do" enum:"proceed,replay,pass"`
	Replayed bool   `json:"replayed"`
	EffectID string `json:"effect_id,omitempty"`
	Key      string `json:"key,omitempty"`

	// Set when Do is proceed.
	Observed        bool       `json:"observed,omitempty" doc:"The tool is only observed: record what comes of the call, and let nothing stop it. An error of the tool is its own, and pauses nothing."`
	Attempt         int        `json:"attempt,omitempty" doc:"Which try this is, from 1."`
	Fence           int64      `json:"fence,omitempty" doc:"To be given to finish."`
	Deadline        *time.Time `json:"deadline,omitempty" doc:"When the call must have been sent by, on the server's clock."`
	PerformWithinMS int64      `json:"perform_within_ms,omitempty" doc:"What is left of it at this answer: count it from before the answered request was sent, on a monotonic clock."`
	VendorKey       string     `json:"vendor_key,omitempty" doc:"To be passed on as the vendor's own idempotency key; the same for every attempt."`

	// Set when Do is replay.
	Outcome   string `json:"outcome,omitempty" enum:"taken,failed"`
	Stored           // what was recorded
	DecidedBy string `json:"decided_by,omitempty" doc:"agent, late_agent, look_up, vendor_key, person or run_closed."`

	LogPosition string `json:"log_position,omitempty"`
}

// Stored is what is on record of a result. Of a result above the stored limit, and of
// one that was not sent, only size and digest are kept: then Result is absent and
// ResultOmitted true.
type Stored struct {
	Result        json.RawMessage `json:"result,omitempty"`
	Error         json.RawMessage `json:"error,omitempty"`
	Reference     string          `json:"reference,omitempty" doc:"The downstream's own name for what happened."`
	ResultOmitted bool            `json:"result_omitted,omitempty" doc:"The result was not sent, or not kept whole."`
	ResultSize    int64           `json:"result_size,omitempty" doc:"Bytes of the whole result."`
	ResultDigest  string          `json:"result_digest,omitempty" doc:"SHA-256 of the whole result, in hex."`
}

// The words of FinishRequest.Outcome that mean something to the server. Every other
// word means that nobody knows, and is kept.
const (
	OutcomeTaken   = "taken"
	OutcomeFailed  = "failed" // the downstream refused it definitely
	OutcomeUnknown = "unknown"
)

// FinishRequest records what became of a call. It names its effect by the path, by
// run_id and key, or by run_id, tool, arguments and occurrence; a call id alone is
// ambiguous and refused.
type FinishRequest struct {
	RunID      string          `json:"run_id,omitempty"`
	Key        string          `json:"key,omitempty"`
	Tool       string          `json:"tool,omitempty"`
	Arguments  json.RawMessage `json:"arguments,omitempty"`
	Occurrence int             `json:"occurrence,omitempty"`
	CallID     string          `json:"call_id,omitempty" doc:"A note; it never names the effect."`

	Fence         int64           `json:"fence,omitempty" doc:"From begin's answer."`
	Outcome       string          `json:"outcome" doc:"taken (also completed) or failed; every other word is unknown, and is kept."`
	Result        json.RawMessage `json:"result,omitempty" doc:"What the tool returned; replayed for ever."`
	Error         json.RawMessage `json:"error,omitempty" doc:"What the tool refused with, or why the outcome is unknown."`
	Reference     string          `json:"reference,omitempty" doc:"The downstream's own name for what happened."`
	ResultOmitted bool            `json:"result_omitted,omitempty" doc:"The result could not be sent; size and digest stand for it."`
	ResultSize    int64           `json:"result_size,omitempty" doc:"Bytes of the omitted result."`
	ResultDigest  string          `json:"result_digest,omitempty" doc:"SHA-256 of the omitted result, in hex."`
	LogPosition   string          `json:"log_position,omitempty"`
}

// FinishAnswer says where the effect stands now.
type FinishAnswer struct {
	EffectID      string `json:"effect_id,omitempty" doc:"Absent when no intent is known: the finish is kept all the same."`
	State         string `json:"state,omitempty"`
	Version       int64  `json:"version,omitempty"`
	WithoutIntent bool   `json:"without_intent,omitempty" doc:"Kept as a finish without an intent: the sign of a broken client."`
	ResultCut     bool   `json:"result_cut,omitempty" doc:"The result is above the stored limit: its size and digest are kept."`
	ResultSize    int64  `json:"result_size,omitempty"`
	ResultDigest  string `json:"result_digest,omitempty"`
	StoredLimit   int64  `json:"stored_limit,omitempty" doc:"That limit in bytes, when it was passed."`
	LogPosition   string `json:"log_position,omitempty"`
}

// MaxBatch is how many operations one batch may hold.
const MaxBatch = 500

// Batch is up to [MaxBatch] begins and finishes, decided in order.
type Batch struct {
	Ops []BatchOp `json:"ops" maxItems:"500" minItems:"1"`
}

// BatchOp holds exactly one of the two. A finish names its effect by EffectID or by
// the members inside it.
type BatchOp struct {
	Begin    *BeginRequest  `json:"begin,omitempty"`
	Finish   *FinishRequest `json:"finish,omitempty"`
	EffectID string         `json:"effect_id,omitempty" doc:"The effect of a finish."`
}

// BatchAnswers holds one answer for each operation, in their order.
type BatchAnswers struct {
	Answers []BatchAnswer `json:"answers"`
}

// BatchAnswer is what the single call would have answered.
type BatchAnswer struct {
	Status  int           `json:"status" doc:"The HTTP status of the single call."`
	Begin   *BeginAnswer  `json:"begin,omitempty"`
	Finish  *FinishAnswer `json:"finish,omitempty"`
	Problem *Problem      `json:"problem,omitempty"`
}
