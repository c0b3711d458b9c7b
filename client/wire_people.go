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
	EffectID      string  `json:"effect_id"`
	RunID         string  `json:"run_id"`
	Account       string  `json:"account,omitempty"`
	Agent         string  `json:"agent,omitempty"`
	Tool          string  `json:"tool"`
	Key           string  `json:"key"`
	Occurrence    int     `json:"occurrence"`
	State         string  `json:"state" enum:"in_flight,interrupted,held,cleared,taken,failed,cancelled"`
	Why           string  `json:"why,omitempty" doc:"Why it is in this state."`
	Version       int64   `json:"version" doc:"To be given to a decision."`
	Blind         bool    `json:"blind,omitempty" doc:"The tool has no look-up."`
	Summary       string  `json:"summary,omitempty"`
	BusinessKey   string  `json:"business_key,omitempty"`
	Amount        *Amount `json:"amount,omitempty"`
	AmountProblem string  `json:"amount_problem,omitempty" doc:"Why no amount could be read."`
	SameAs        string  `json:"same_as,omitempty" doc:"The effect it was found to be."`
	RepeatOf      string  `json:"repeat_of,omitempty" doc:"The earlier identical call."`

	OpenedAt     time.Time     `json:"opened_at"`
	WaitingSince *time.Time    `json:"waiting_since,omitempty"`
	DecidedBy    string        `json:"decided_by,omitempty" doc:"agent, late_agent, look_up, vendor_key, person or run_closed."`
	ReleaseAt    *time.Time    `json:"release_at,omitempty" doc:"When the decision becomes visible to agents; until then it can be undone."`
	Released     bool          `json:"released,omitempty"`
	UsedAt       *time.Time    `json:"used_at,omitempty" doc:"When an agent was first answered from it."`
	Moment       *time.Time    `json:"moment,omitempty" doc:"When the last attempt can no longer land."`
	Early        bool          `json:"early,omitempty" doc:"Decided before the moment: to be confirmed after it."`
	Proposal     *DecisionView `json:"proposal,omitempty" doc:"A verdict that waits for a second person."`

	Arguments json.RawMessage `json:"arguments,omitempty" doc:"As sent, secrets replaced."`
	Stored
	CallID     string          `json:"call_id,omitempty"`
	ClientTime string          `json:"client_time,omitempty" doc:"The agent's own clock: a claim."`
	Context    json.RawMessage `json:"context,omitempty" doc:"What the agent told about the call: labels, trace, why, due_at."`

	Attempts       []AttemptView       `json:"attempts"`
	Evidence       []EvidenceView      `json:"evidence"`
	Decisions      []DecisionView      `json:"decisions"`
	Contradictions []ContradictionView `json:"contradictions"`
	Refused        []RefusedView       `json:"refused,omitempty" doc:"Starts and begins refused while this was open."`
	Overlaps       []OverlapView       `json:"overlaps,omitempty" doc:"Other effects of the same business key."`

	LookUps       []LookUpView `json:"look_ups,omitempty" doc:"What the downstream answered, the latest first; at most 100."`
	LookingUp     bool         `json:"looking_up,omitempty" doc:"The downstream is being asked."`
	NextLookUpAt  *time.Time   `json:"next_look_up_at,omitempty" doc:"When it is asked next; absent where it is not asked any more."`
	LookUpsEnded  *time.Time   `json:"look_ups_ended_at,omitempty" doc:"When the schedule ended without proof."`
	VendorKeyEnds *time.Time   `json:"vendor_key_ends_at,omitempty" doc:"Until when the vendor keeps its own key, where that is declared."`
	LogPosition   string       `json:"log_position,omitempty"`
}

// LookUpView is one look at the downstream.
type LookUpView struct {
	AskedAt   time.Time         `json:"asked_at"`
	Verdict   string            `json:"verdict" enum:"taken,not_taken,inconclusive"`
	Reason    string            `json:"reason" doc:"The rule that decided."`
	Why       string            `json:"why" doc:"A sentence."`
	Reference string            `json:"reference,omitempty" doc:"The downstream's name for it, for taken."`
	Earliest  *time.Time        `json:"earliest,omitempty" doc:"When not_taken can be proven at the earliest."`
	Status    int               `json:"status,omitempty" doc:"The last HTTP status."`
	LatencyMS int64             `json:"latency_ms" doc:"Of all requests together."`
	Records   []LookUpRecord    `json:"records,omitempty" doc:"What was found."`
	Needs     []LookUpCondition `json:"conditions,omitempty" doc:"What a proven not_taken needs."`
}

// LookUpRecord is one record of the downstream that may be the effect.
type LookUpRecord struct {
	Reference string `json:"reference,omitempty"`
	Amount    string `json:"amount,omitempty" doc:"As the downstream says it."`
	Currency  string `json:"currency,omitempty"`
	State     string `json:"state,omitempty" doc:"The downstream's own word."`
	Match     bool   `json:"match" doc:"Amount, currency and recipient are the effect's."`
	Final     bool   `json:"final"`
	Ours      bool   `json:"ours,omitempty" doc:"It carries our own key."`
	Possible  bool   `json:"possible,omitempty" doc:"It may be ours without the business key."`
	Never     bool   `json:"never,omitempty" doc:"Cancelled for good."`
	Reversed  bool   `json:"reversed,omitempty" doc:"It took effect, and the money came back."`
	Foreign   bool   `json:"foreign,omitempty" doc:"It proves another effect, or a person said that it is not this one."`
	Owner     string `json:"owner,omitempty" doc:"That other effect."`
}

// LookUpCondition is one thing that a proven not_taken needs.
type LookUpCondition struct {
	Name     string     `json:"name"`
	Met      bool       `json:"met"`
	Never    bool       `json:"never,omitempty" doc:"As things are declared, it cannot be met."`
	Earliest *time.Time `json:"earliest,omitempty"`
	Why      string     `json:"why"`
}

// AttemptView is one try at performing the effect.
type AttemptView struct {
	Attempt  int        `json:"attempt"`
	Fence    int64      `json:"fence"`
	Worker   string     `json:"worker,omitempty"`
	BegunAt  time.Time  `json:"begun_at"`
	Deadline *time.Time `json:"deadline,omitempty"`
}

// EvidenceView is one immutable observation.
type EvidenceView struct {
	At        time.Time `json:"at"`
	Source    string    `json:"source" doc:"What saw it."`
	Person    string    `json:"person,omitempty"`
	Fence     int64     `json:"fence,omitempty"`
	Verdict   string    `json:"verdict,omitempty"`
	Reference string    `json:"reference,omitempty"`
	Seen      string    `json:"seen,omitempty"`

	NextLook *time.Time `json:"next_look,omitempty" doc:"When a person means to look again."`
}

// DecisionView is one act on an effect, undone ones included.
type DecisionView struct {
	DecisionID string    `json:"decision_id,omitempty"`
	At         time.Time `json:"at"`
	Act        string    `json:"act"`
	Verdict    string    `json:"verdict,omitempty"`
	By         string    `json:"by"`
	Person     string    `json:"person,omitempty"`
	Note       string    `json:"note,omitempty"`
	Reference  string    `json:"reference,omitempty"`
}

// ContradictionView is evidence that disagrees with what was decided.
type ContradictionView struct {
	At             time.Time  `json:"at"`
	Kind           string     `json:"kind"`
	Recovery       string     `json:"recovery,omitempty" doc:"suspected, yes or no: whether money left twice."`
	AcknowledgedAt *time.Time `json:"acknowledged_at,omitempty"`
	AcknowledgedBy string     `json:"acknowledged_by,omitempty"`
	Note           string     `json:"note,omitempty"`
}

// RefusedView is a start or begin that was refused.
type RefusedView struct {
	At        time.Time `json:"at"`
	Call      string    `json:"call"`
	Reason    string    `json:"reason"`
	Worker    string    `json:"worker,omitempty"`
	AttemptID string    `json:"attempt_id,omitempty"`
}

// OverlapView is another effect of the same business key.
type OverlapView struct {
	EffectID  string          `json:"effect_id"`
	RunID     string          `json:"run_id"`
	State     string          `json:"state"`
	OpenedAt  time.Time       `json:"opened_at"`
	Amount    *Amount         `json:"amount,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Owner     bool            `json:"owner,omitempty" doc:"It holds the business key."`
}

// QueueItem is one row of the queue: light, without arguments.
type QueueItem struct {
	EffectID     string    `json:"effect_id"`
	RunID        string    `json:"run_id"`
	Account      string    `json:"account,omitempty"`
	Agent        string    `json:"agent,omitempty"`
	Tool         string    `json:"tool"`
	State        string    `json:"state"`
	Why          string    `json:"why,omitempty"`
	Version      int64     `json:"version"`
	Summary      string    `json:"summary,omitempty"`
	BusinessKey  string    `json:"business_key,omitempty"`
	Amount       *Amount   `json:"amount,omitempty"`
	WaitingSince time.Time `json:"waiting_since"`
	WaitingFor   int64     `json:"waiting_seconds" doc:"How long, by the server's clock."`
	Overdue      bool      `json:"overdue,omitempty"`
	Attempts     int       `json:"attempts"`
	Refused      int64     `json:"refused,omitempty" doc:"Starts and begins refused while it waits."`
	Contradicted bool      `json:"contradicted,omitempty"`
	SecondWaits  bool      `json:"second_waits,omitempty" doc:"A verdict waits for a second person."`
	Confirm      bool      `json:"confirm,omitempty" doc:"Decided too early: to be confirmed."`
	Known        string    `json:"known,omitempty" doc:"What is known, in a few words."`

	ProvableFrom *time.Time `json:"provable_from,omitempty" doc:"When look-ups can prove at the earliest that it was not taken."`
	URL          string     `json:"url,omitempty"`
}

// QueuePage is one page of the queue. Rows decided meanwhile never shift the pages
// that follow.
type QueuePage struct {
	Items      []QueueItem `json:"items"`
	NextCursor string      `json:"next_cursor,omitempty" doc:"Absent on the last page."`
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
	Evidence   string          `json:"evidence,omitempty" doc:"What was seen, and where."`
	NotOurs    []string        `json:"not_ours,omitempty" doc:"References that were found and judged not to be this effect."`
	SameAs     string          `json:"same_as,omitempty" doc:"The other effect, for same_as."`
	Recovery   bool            `json:"recovery,omitempty" doc:"For acknowledge: whether money must be claimed back."`
}

// The values of DecisionAnswer.Status.
const (
	DecisionMade         = "decided"
	DecisionConcurring   = "concurring"    // the same verdict was there already, by somebody else
	DecisionConfirmed    = "confirmed"     // an early verdict, confirmed after the moment
	DecisionSecondPerson = "second_person" // recorded; waits for a second person
)

// DecisionAnswer says what became of a verdict.
type DecisionAnswer struct {
	EffectID  string     `json:"effect_id"`
	Status    string     `json:"status" enum:"decided,concurring,confirmed,second_person"`
	State     string     `json:"state"`
	Version   int64      `json:"version"`
	ReleaseAt *time.Time `json:"release_at,omitempty" doc:"When it becomes visible to agents."`
	Early     bool       `json:"early,omitempty" doc:"Made before the last attempt can no longer land: to be confirmed after the moment."`
	Moment    *time.Time `json:"moment,omitempty"`

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
	By      string    `json:"by" doc:"agent, late_agent, look_up, vendor_key, person or run_closed."`
	Who     string    `json:"who,omitempty" doc:"The person's name."`
	When    time.Time `json:"when"`
	Verdict string    `json:"verdict,omitempty"`
	Why     string    `json:"why,omitempty"`
}

// EvidenceRequest records what a person saw. It decides nothing.
type EvidenceRequest struct {
	Seen     string     `json:"seen" doc:"What was seen, and where."`
	Note     string     `json:"note,omitempty"`
	NextLook *time.Time `json:"next_look,omitempty" doc:"When somebody should look again."`
}

// UndoRequest takes an unused decision back.
type UndoRequest struct {
	Version int64  `json:"version,omitempty" doc:"The version of the effect that was looked at; whatever it is now when absent."`
	Note    string `json:"note" doc:"Why."`
}

// EffectChanged answers evidence, look-up and undo.
type EffectChanged struct {
	EffectID    string `json:"effect_id"`
	State       string `json:"state"`
	Version     int64  `json:"version"`
	LookUp      string `json:"look_up,omitempty" enum:"due,under_way" doc:"Of a look-up: whether it is asked now, or a question was under way already."`
	LogPosition string `json:"log_position,omitempty"`
}

// The values of EffectChanged.LookUp.
const (
	LookUpDue      = "due"
	LookUpUnderWay = "under_way"
)
