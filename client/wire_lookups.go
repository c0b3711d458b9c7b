package client

import (
	"encoding/json"
	"time"
)

// ClaimLookups asks for questions that workers of a pool answer.
type ClaimLookups struct {
	Pool string `json:"pool" doc:"As the policy names it: lookup: worker: {pool: NAME}."`
	Max  int    `json:"max,omitempty" doc:"How many questions at most: 1 to 100; 1 when absent."`
	Wait string `json:"wait,omitempty" doc:"How long to wait while nothing is due, such as 30s; at most 60s."`
}

// LookupQuestions answers it; empty where nothing is due.
type LookupQuestions struct {
	Questions []LookupQuestion `json:"questions"`
}

// LookupQuestion asks whether an effect took place. Nobody else is asked until AnswerBy.
type LookupQuestion struct {
	LookupID     string          `json:"lookup_id" doc:"To be answered under."`
	AnswerBy     time.Time       `json:"answer_by" doc:"Until when the answer is waited for, on the server's clock."`
	AnswerWithin int64           `json:"answer_within_ms" doc:"What is left of it at this answer. One that comes later is not judged."`
	AskedAt      time.Time       `json:"asked_at" doc:"What the answer shows must be as of this time, or later."`
	EffectID     string          `json:"effect_id"`
	RunID        string          `json:"run_id"`
	Tool         string          `json:"tool"`
	BusinessKey  string          `json:"business_key,omitempty" doc:"What the outside world calls the action: what to search by."`
	VendorKey    string          `json:"vendor_key" doc:"What every attempt passed on as idempotency key."`
	Reference    string          `json:"reference,omitempty" doc:"The downstream's own name for it, as far as it is known."`
	Amount       *Amount         `json:"amount,omitempty" doc:"Where the tool declares one."`
	Arguments    json.RawMessage `json:"arguments" doc:"As they are stored: secrets are replaced."`
	Attempts     []LookupAttempt `json:"attempts" doc:"All that may have been sent, the oldest first."`
	Canary       string          `json:"canary,omitempty" doc:"The business key of a record that exists, to be looked for with the same credentials."`
	World        string          `json:"world,omitempty" doc:"Where the effects take place."`
}

// LookupAttempt is one try at performing the effect.
type LookupAttempt struct {
	BegunAt  *time.Time `json:"begun_at,omitempty" doc:"Absent where it is not on record."`
	Deadline *time.Time `json:"deadline,omitempty" doc:"When it had to be sent by."`
}

// LookupAnswer is what a worker saw: records, never a verdict. What is left out counts as
// not said.
type LookupAnswer struct {
	Hits       []json.RawMessage `json:"hits,omitzero" doc:"Records that go by the business key, each an object; see docs/lookups.md. An empty list says that there are none."`
	Possible   []json.RawMessage `json:"possible,omitzero" doc:"Records that may be ours without the key; any blocks not_taken."`
	Complete   bool              `json:"complete,omitempty" doc:"Everything that there is was read."`
	CanarySeen bool              `json:"canary_seen,omitempty" doc:"A record that exists was seen with the same credentials."`
	World      string            `json:"world,omitempty" doc:"Where it looked."`
	Error      string            `json:"error,omitempty" doc:"Why it could not look. It is shown to people: no secrets."`
}

// LookupVerdict is what the answer proves.
type LookupVerdict struct {
	LookupID string     `json:"lookup_id"`
	EffectID string     `json:"effect_id"`
	Verdict  string     `json:"verdict" enum:"taken,not_taken,inconclusive"`
	Reason   string     `json:"reason" doc:"The rule that decided; see docs/lookups.md."`
	Why      string     `json:"why" doc:"The same in a sentence."`
	Earliest *time.Time `json:"earliest,omitempty" doc:"When not_taken can be proven at the earliest, where that is known."`
}

// InboxAnswer says that an event is stored.
type InboxAnswer struct {
	EventID  string `json:"event_id"`
	Repeated bool   `json:"repeated" doc:"It was stored before, and is stored once."`
}
