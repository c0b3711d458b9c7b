package effects

import (
	"time"
)

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
