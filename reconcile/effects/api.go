package effects

import (
	"time"
)

// Begin asks to perform one side-effecting call.
type Begin struct {
	Account    int64  // the owner of the token that asked
	RunID      string // the agent's own name for the run
	Lease      string // the holder's secret lease token
	AttemptID  string // the client's id for this try; repeated when the answer was lost
	Tool       string
	Arguments  []byte // a JSON object, exactly as sent
	Occurrence int    // 1 for the first identical call; 0 means 1
	Key        string // minted by the client, within its run; replaces arguments and occurrence in the key
	CallID     string // the provider's tool-call id: a note
	ClientTime string // a claim, never used to decide
	Context    []byte // JSON {labels, trace, why, due_at}, shown to people

	LogPosition string // what the caller saw last; "" when it saw nothing yet
}

// Finish reports how an attempt ended. The effect is named by EffectID, or by
// RunID with Key (64 hex digits, or one the client minted), or by RunID with Tool,
// Arguments and Occurrence.
type Finish struct {
	Account    int64
	EffectID   string
	RunID      string
	Key        string
	Tool       string
	Arguments  []byte
	Occurrence int

	Fence         int64  // 0: not given; accepted only where a single attempt exists
	Outcome       string // "taken" (or "completed"), "failed"; every other word is unknown
	Result        []byte // JSON, or nil
	Error         []byte // JSON, or nil
	Reference     string // the downstream's own id of what happened
	ResultOmitted bool
	ResultSize    int64
	ResultDigest  string // 64 hex digits of SHA-256

	LogPosition string
}

// Op is one element of [Engine.Apply]: exactly one field is set.
type Op struct {
	Begin  *Begin
	Finish *Finish
}

// Answer is what became of one Op: exactly one of Begin, Finish and Refusal is set.
type Answer struct {
	Begin   *BeginAnswer
	Finish  *FinishAnswer
	Refusal *Refusal
}

// BeginAnswer clears an attempt (Do "proceed") or replays what is known ("replay").
type BeginAnswer struct {
	Do            string // "proceed" | "replay" | "pass"
	Observed      bool   // the tool is only observed: whatever is known, it proceeds
	EffectID      string
	Key           string // 64 hex digits
	Attempt       int
	Fence         int64
	Deadline      time.Time
	PerformWithin time.Duration // what is left until Deadline, by the database's clock
	VendorKey     string
	LogPosition   string

	// Replays only.
	Outcome   string // "taken" | "failed"
	Result    []byte // JSON; nil when the result is not held
	Omitted   bool   // a result existed but was cut: ResultSize and ResultDigest describe it
	Size      int64
	Digest    string
	Error     []byte
	Reference string
	DecidedBy string // "agent" | "late_agent" | "look_up" | "person"
}

// FinishAnswer says what was recorded.
type FinishAnswer struct {
	EffectID    string // "" for a finish without an intent, which is only kept
	State       string
	Version     int64
	Stored      Stored
	LogPosition string
}

// Stored describes what was kept of a result.
type Stored struct {
	Size   int64  // bytes as sent
	Digest string // 64 hex digits of SHA-256 of what was sent
	Cut    bool   // more than [ResultLimit] was sent: only size and digest are kept
	Limit  int64  // bytes
}

// ResultLimit is the most that is kept of one result, in bytes; a longer one is
// recorded by size and digest, and the effect is closed all the same.
const ResultLimit = 256 << 10
