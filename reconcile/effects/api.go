package effects

import (
	"time"

	"quittance/ledger/money"
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
	Do            string // "proceed" | "replay"
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
	CodeTooLarge    Code = "too_large"      // 413: Detail says the limit
	CodeInvalid     Code = "invalid"        // 422: well-formed but not acceptable; Pointer says where
	CodeNotAllowed  Code = "not_allowed"    // the verdict does not fit the effect's state
	CodeNoLookup    Code = "no_lookup"      // the tool has none
	CodeNoteMissing Code = "note_missing"   // a person's decision needs a note
	CodeSecondWaits Code = "second_waiting" // another verdict waits for a second person: confirm it or send it back
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

// Open asks for the lease of a run, opening the run when it is new.
type Open struct {
	Account     int64
	RunID       string
	Agent       string
	Worker      string
	AttemptID   string
	Lease       time.Duration // 2 s to 10 min; 0 means 60 s
	LogPosition string
}

// Claim asks for the lease of any ready run of one of the agents.
type Claim struct {
	Account   int64
	Agents    []string
	Worker    string
	AttemptID string
	Lease     time.Duration
}

// Lease is the right to act for a run.
type Lease struct {
	RunID      string
	Agent      string
	State      string // "running", or "paused" when the holder asked again
	Token      string // secret
	Epoch      int64
	ExpiresAt  time.Time
	Checkpoint *CheckpointInfo // nil when none was saved
	// Volatile are, per tool, the argument paths left out of the key, as they were when
	// the run opened: a client leaves them out when it counts occurrences.
	Volatile    map[string][]string
	LogPosition string
}

// CheckpointInfo names the checkpoint to resume from.
type CheckpointInfo struct {
	Turn    int64
	SavedAt time.Time
}

// Checkpoint is an agent's saved state: State and Occurrences are JSON as sent.
type Checkpoint struct {
	CheckpointInfo
	State       []byte
	Occurrences []byte
}

// RunView is a run as its agent sees it.
type RunView struct {
	RunID       string
	Agent       string
	State       string
	Epoch       int64
	HeldBy      string
	ExpiresAt   time.Time // zero: no lease
	OpenedAt    time.Time
	ClosedAt    time.Time // zero: open
	Refused     int64
	WaitingFor  []Waiting
	Open        []OpenEffect
	LogPosition string
}

// OpenEffect is an effect of a run that is not closed yet.
type OpenEffect struct {
	EffectID string
	Tool     string
	Key      string
	State    string
	Since    time.Time
}

// Verdict is what a person says of an effect.
type Verdict string

const (
	VerdictTaken       Verdict = "taken"
	VerdictNotTaken    Verdict = "not_taken"
	VerdictStop        Verdict = "stop"
	VerdictAllow       Verdict = "allow"
	VerdictSameAs      Verdict = "same_as"
	VerdictAcknowledge Verdict = "acknowledge"
	VerdictSendBack    Verdict = "send_back" // the second person's no
)

// Decide is a person's verdict on one effect.
type Decide struct {
	EffectID   string
	DecisionID string // the client's id: the same id again gives the first answer
	Version    int64  // the version the person looked at
	Verdict    Verdict
	Note       string
	Reference  string
	Result     []byte   // JSON given to the agent as the replayed result
	Evidence   string   // what was seen, and where
	SameAs     string   // effect id, for VerdictSameAs
	NotOurs    []string // references seen at the downstream that are somebody else's
	Recovery   bool     // VerdictAcknowledge: money left twice and must be claimed back
}

// Person is somebody who decides; roles are checked before the engine is called
// except where the rule needs two different people.
type Person struct {
	ID   int64
	Name string
}

// DecideAnswer says what became of a verdict.
type DecideAnswer struct {
	EffectID    string
	State       string
	Version     int64
	ReleaseAt   time.Time
	Concurring  bool // the same verdict was already there, by somebody else
	Waits       bool // recorded, waits for a second person
	Confirmed   bool // the same person confirmed an early verdict after the moment
	Early       bool // made before the moment: it must be confirmed after Moment
	Moment      time.Time
	LogPosition string
}

// Undo takes back a decision that is not used yet.
type Undo struct {
	EffectID string
	Version  int64 // 0: whatever it is now
	Note     string
}

// AddEvidence records what a person saw without deciding ("looked, cannot tell
// yet"); NextLook is when they mean to look again, zero for no date.
type AddEvidence struct {
	EffectID string
	Seen     string
	Note     string
	NextLook time.Time
}

// EffectView is one effect with its whole history.
type EffectView struct {
	EffectID       string
	RunID          string
	Agent          string
	Account        string
	Tool           string
	Key            string
	BusinessKey    string
	Occurrence     int
	CallID         string
	ClientTime     string
	Context        []byte
	State          string
	Why            string
	Version        int64
	Summary        string
	Amount         *money.Amount
	AmountProblem  string
	Arguments      []byte
	Result         []byte
	Stored         *Stored
	Error          []byte
	Reference      string
	SameAs         string
	RepeatOf       string
	DecidedBy      string
	ReleaseAt      time.Time
	Released       bool
	UsedAt         time.Time
	Moment         time.Time
	Early          bool
	OpenedAt       time.Time
	WaitingSince   time.Time
	Blind          bool // the tool has no look-up
	Proposal       *DecisionView
	Attempts       []AttemptView
	Evidence       []EvidenceView
	Decisions      []DecisionView
	Contradictions []ContradictionView
	Refused        []RefusedView // starts and begins refused while this was open
	Overlaps       []OverlapView // other effects with the same business key
	LogPosition    string
}

// AttemptView is one try at performing an effect.
type AttemptView struct {
	Number   int
	Fence    int64
	Worker   string
	BegunAt  time.Time
	Deadline time.Time
}

// EvidenceView is one observation.
type EvidenceView struct {
	At        time.Time
	Source    string
	Person    string
	Fence     int64
	Verdict   string
	Reference string
	Seen      string
	NextLook  time.Time // when a person means to look again
}

// DecisionView is one act on an effect.
type DecisionView struct {
	ID        string
	At        time.Time
	Act       string
	Verdict   string
	By        string
	PersonID  int64
	Person    string
	Note      string
	Reference string
}

// ContradictionView is evidence that disagrees with a decision.
type ContradictionView struct {
	At             time.Time
	Kind           string
	Recovery       string // "suspected" | "yes" | "no"
	AcknowledgedAt time.Time
	AcknowledgedBy string
	Note           string
}

// RefusedView is a start or begin that was refused.
type RefusedView struct {
	At        time.Time
	Call      string
	Reason    string
	Worker    string
	AttemptID string
}

// OverlapView is another effect with the same business key, or the same call.
type OverlapView struct {
	EffectID  string
	RunID     string
	State     string
	OpenedAt  time.Time
	Amount    *money.Amount
	Arguments []byte
	Owner     bool // it holds the claim
}

// QueueQuery filters the queue; zero values filter nothing.
type QueueQuery struct {
	Account     string
	Tool        string
	Agent       string
	RunID       string
	BusinessKey string
	State       string // "interrupted" | "held" | "contradicted" | "second" (waits for a second person) | "confirm" (decided too early)
	Words       string // all must stand in the business key, the summary or the run's name
	Currency    string
	Least, Most string        // of the amount, whole smallest units of Currency
	Older       time.Duration // waiting at least this long
	Overdue     bool          // waiting longer than its tool's overdue_after
	Cursor      string
	Limit       int // 1 to 200; 0 means 50
}

// QueueItem answers four questions: what was attempted, how much is at stake, how
// long it has waited, what is already known.
type QueueItem struct {
	EffectID     string
	RunID        string
	Agent        string
	Account      string
	Tool         string
	BusinessKey  string
	Summary      string
	Amount       *money.Amount
	State        string
	Why          string
	Version      int64
	Attempts     int
	Refused      int64
	WaitingSince time.Time
	Waiting      time.Duration // by the database clock
	Contradicted bool
	SecondWaits  bool
	Confirm      bool   // decided too early; to be confirmed
	Known        string // what is known, in a few words
	Overdue      bool
}

// QueuePage is one page; Next is "" on the last.
type QueuePage struct {
	Items []QueueItem
	Next  string
}
