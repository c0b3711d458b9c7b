package client

import (
	"encoding/json"
	"time"
)

// Amount is money as the policy read it from the arguments: a decimal text in the
// unit of the currency, never a float.
type Amount struct {
	Value    string `json:"value" example:"4200.00"`
	Currency string `json:"currency" example:"USD"`
}

// EffectView is everything that is known about one effect.
type EffectView struct {
	EffectID    string    `json:"effect_id"`
	RunID       string    `json:"run_id"`
	Account     string    `json:"account,omitempty"`
	Tool        string    `json:"tool"`
	Key         string    `json:"key"`
	Occurrence  int       `json:"occurrence"`
	State       string    `json:"state" enum:"in_flight,interrupted,held,cleared,taken,failed,cancelled"`
	Reason      string    `json:"reason,omitempty" doc:"Why it is in this state."`
	Version     int64     `json:"version" doc:"To be given to a decision."`
	Summary     string    `json:"summary,omitempty"`
	BusinessKey string    `json:"business_key,omitempty"`
	Amount      *Amount   `json:"amount,omitempty"`
	VendorKey   string    `json:"vendor_key,omitempty"`
	CreatedAt   time.Time `json:"created_at"`
	RepeatOf    string    `json:"repeat_of,omitempty" doc:"The earlier identical call."`

	ClosedBy  string     `json:"closed_by,omitempty" doc:"agent, late_agent, look_up, vendor_key or person."`
	ClosedAt  *time.Time `json:"closed_at,omitempty"`
	ReleaseAt *time.Time `json:"release_at,omitempty" doc:"When the decision becomes visible to agents; until then it can be undone."`

	Arguments json.RawMessage `json:"arguments,omitempty" doc:"As sent, secrets replaced."`
	Stored

	Attempts       []AttemptView       `json:"attempts"`
	Evidence       []EvidenceView      `json:"evidence"`
	Decisions      []DecisionView      `json:"decisions"`
	Contradictions []ContradictionView `json:"contradictions"`
	Context        *Context            `json:"context,omitempty"`
	LogPosition    string              `json:"log_position,omitempty"`
}

// AttemptView is one try, begun or refused.
type AttemptView struct {
	Attempt  int        `json:"attempt"`
	Fence    int64      `json:"fence,omitempty"`
	Worker   string     `json:"worker,omitempty"`
	CallID   string     `json:"call_id,omitempty"`
	BegunAt  time.Time  `json:"begun_at"`
	Deadline *time.Time `json:"deadline,omitempty"`
	EndedAt  *time.Time `json:"ended_at,omitempty"`
	Outcome  string     `json:"outcome,omitempty" doc:"The word the agent used."`
	Refused  string     `json:"refused,omitempty" doc:"Set for a begin that was refused: with which code."`

	ClientTime *time.Time `json:"client_time,omitempty" doc:"The agent's own clock: a claim."`
}

// EvidenceView is one immutable observation.
type EvidenceView struct {
	EvidenceID string          `json:"evidence_id"`
	At         time.Time       `json:"at"`
	By         string          `json:"by" doc:"Who or what saw it."`
	Kind       string          `json:"kind"`
	Verdict    string          `json:"verdict,omitempty"`
	Attempt    int             `json:"attempt,omitempty"`
	Reference  string          `json:"reference,omitempty"`
	Note       string          `json:"note,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
}

// DecisionView is one decision, undone ones included.
type DecisionView struct {
	DecisionID string     `json:"decision_id"`
	Verdict    string     `json:"verdict"`
	Who        string     `json:"who"`
	When       time.Time  `json:"when"`
	Note       string     `json:"note,omitempty"`
	Reference  string     `json:"reference,omitempty"`
	SecondWho  string     `json:"second_who,omitempty"`
	ReleaseAt  *time.Time `json:"release_at,omitempty"`
	UsedAt     *time.Time `json:"used_at,omitempty"`
	UndoneAt   *time.Time `json:"undone_at,omitempty"`
	UndoneBy   string     `json:"undone_by,omitempty"`
	UndoNote   string     `json:"undo_note,omitempty"`
}

// ContradictionView is evidence that disagrees with what was decided.
type ContradictionView struct {
	ContradictionID string     `json:"contradiction_id"`
	At              time.Time  `json:"at"`
	What            string     `json:"what"`
	EvidenceID      string     `json:"evidence_id,omitempty"`
	AcknowledgedAt  *time.Time `json:"acknowledged_at,omitempty"`
	AcknowledgedBy  string     `json:"acknowledged_by,omitempty"`
	Note            string     `json:"note,omitempty"`
}

// QueueItem is one row of the queue: light, without arguments.
type QueueItem struct {
	EffectID     string    `json:"effect_id"`
	RunID        string    `json:"run_id"`
	Account      string    `json:"account,omitempty"`
	Agent        string    `json:"agent,omitempty"`
	Tool         string    `json:"tool"`
	State        string    `json:"state" enum:"interrupted,held,contradicted"`
	Reason       string    `json:"reason,omitempty"`
	Version      int64     `json:"version"`
	Summary      string    `json:"summary,omitempty"`
	BusinessKey  string    `json:"business_key,omitempty"`
	Amount       *Amount   `json:"amount,omitempty"`
	WaitingSince time.Time `json:"waiting_since"`
	Attempts     int       `json:"attempts"`
	Known        string    `json:"known,omitempty" doc:"What the last evidence says."`
	Blind        bool      `json:"blind,omitempty" doc:"The tool has no look-up."`
	URL          string    `json:"url,omitempty"`
}

// QueuePage is one page of the queue. Rows decided meanwhile never shift the pages
// that follow.
type QueuePage struct {
	Items       []QueueItem `json:"items"`
	NextCursor  string      `json:"next_cursor,omitempty" doc:"Absent on the last page."`
	LogPosition string      `json:"log_position,omitempty"`
}

// The verdicts of a decision.
const (
	VerdictTaken       = "taken"
	VerdictNotTaken    = "not_taken"
	VerdictStop        = "stop"
	VerdictAllow       = "allow"
	VerdictSameAs      = "same_as"
	VerdictAcknowledge = "acknowledge"
	VerdictSendBack    = "send_back"
)

// DecisionRequest is a person's verdict on one effect.
type DecisionRequest struct {
	EffectID   string          `json:"effect_id,omitempty" doc:"Required in a list, absent where the path names the effect."`
	DecisionID string          `json:"decision_id" doc:"Chosen by the caller; the same one again gets the same answer again."`
	Version    int64           `json:"version" doc:"The version of the effect that was looked at."`
	Verdict    string          `json:"verdict" enum:"taken,not_taken,stop,allow,same_as,acknowledge,send_back"`
	Note       string          `json:"note" doc:"What the decision rests on."`
	Reference  string          `json:"reference,omitempty" doc:"The downstream's name for what was found."`
	Result     json.RawMessage `json:"result,omitempty" doc:"What the agent gets in place of the tool's answer."`
	Evidence   []string        `json:"evidence,omitempty" doc:"The evidence it rests on, by id."`
	NotOurs    []string        `json:"not_ours,omitempty" doc:"References that were found and judged not to be this effect."`
	SameAs     string          `json:"same_as,omitempty" doc:"The other effect, for same_as."`
	Recovery   *bool           `json:"recovery,omitempty" doc:"For acknowledge: whether money must be claimed back."`
}

// The values of DecisionAnswer.Status.
const (
	DecisionMade         = "decided"
	DecisionConcurring   = "concurring"
	DecisionSecondPerson = "second_person"
	DecisionSentBack     = "sent_back"
)

// DecisionAnswer says what became of a verdict.
type DecisionAnswer struct {
	EffectID   string     `json:"effect_id"`
	DecisionID string     `json:"decision_id"`
	Status     string     `json:"status" enum:"decided,concurring,second_person,sent_back"`
	State      string     `json:"state"`
	Version    int64      `json:"version"`
	ReleaseAt  *time.Time `json:"release_at,omitempty" doc:"When it becomes visible to agents."`
	Decided    *Decided   `json:"decided,omitempty"`

	LogPosition string `json:"log_position,omitempty"`
}

// Decisions is a list of verdicts. One without an effect, or one effect or decision
// id twice, refuses the list whole and nothing changes.
type Decisions struct {
	Decisions []DecisionRequest `json:"decisions" minItems:"1" maxItems:"500"`
}

// DecisionAnswers holds one answer for each verdict, in their order.
type DecisionAnswers struct {
	Answers []DecisionResult `json:"answers"`
}

// DecisionResult is what the single call would have answered.
type DecisionResult struct {
	EffectID string          `json:"effect_id"`
	Status   int             `json:"status" doc:"The HTTP status of the single call."`
	Decision *DecisionAnswer `json:"decision,omitempty"`
	Problem  *Problem        `json:"problem,omitempty"`
}

// Decided says who decided, when, what and why.
type Decided struct {
	Who     string    `json:"who"`
	When    time.Time `json:"when"`
	Verdict string    `json:"verdict"`
	Why     string    `json:"why,omitempty"`
}

// EvidenceRequest records that a person looked and could not tell, or what they saw.
type EvidenceRequest struct {
	Seen      string     `json:"seen" doc:"What was seen, and where."`
	Note      string     `json:"note,omitempty"`
	Verdict   string     `json:"verdict,omitempty" enum:"taken,not_taken,inconclusive" doc:"What it shows; inconclusive when absent. It decides nothing."`
	Reference string     `json:"reference,omitempty"`
	NextLook  *time.Time `json:"next_look,omitempty" doc:"When somebody should look again."`
}

// UndoRequest takes an unused decision back.
type UndoRequest struct {
	Version int64  `json:"version" doc:"The version of the effect that was looked at."`
	Note    string `json:"note" doc:"Why."`
}

// EffectChanged answers evidence, look-up and undo.
type EffectChanged struct {
	EffectID    string `json:"effect_id"`
	State       string `json:"state"`
	Version     int64  `json:"version"`
	EvidenceID  string `json:"evidence_id,omitempty"`
	LogPosition string `json:"log_position,omitempty"`
}
