package effects

import (
	"time"

	"quittance/ledger/money"
)

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
	// Provable is when look-ups can prove at the earliest that it was not taken; zero where
	// that is past, never, or not what is waited for.
	Provable time.Time
	Overdue  bool
}

// QueuePage is one page; Next is "" on the last.
type QueuePage struct {
	Items []QueueItem
	Next  string
}
