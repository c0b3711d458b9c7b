package views

// Looks is what asking the downstream has shown.
type Looks struct {
	State      State
	Asked      Time // of the look that Said is from
	Said       Text // why, as a sentence
	Since      Text // "5 looks in a row could not check, since 14:02", "" for none
	Next       string
	Ended      string // the schedule ended, "" while it goes on
	Intent     Intent
	Records    []Record
	More       string // "and 12 more records"
	Conditions []Proof
	Proven     string // "6 of 9 hold; all can at 14:20:00 UTC at the earliest"
	Open       bool   // the conditions are shown at once
	Check      *CheckNow
}

// CheckNow is the button that asks now.
type CheckNow struct {
	Label, Action, Token string
	// WithForm: the verdict form is on the page, and what is typed there is kept.
	WithForm bool
}

// Intent is what records are compared with.
type Intent struct {
	Amount *Money
	Key    Text
}

// Record is one record of the downstream.
type Record struct {
	ID        string
	Reference Text
	Marks     []State // what it is, the most pressing first
	Amount    Text
	Differs   bool // from the intent's
	Word      Text // the downstream's own word for where it stands
	Final     string
	Ours      string
	Owner     string // address of the effect that it proves
	Seen      string // "not shown since 14:02:11 UTC"
	Code      *Code
}

// Proof is one of the conditions of a proven "not taken".
type Proof struct {
	Met, Never bool
	Text       string
}

// Fold is what a line of the history opens.
type Fold struct {
	ID      string
	Facts   []Fact
	Excerpt Text
}
