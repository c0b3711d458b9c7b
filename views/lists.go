package views

// Decided lists what is decided and not yet used by an agent: the last place where it
// can be taken back.
type Decided struct {
	Page
	Rows  []DecidedRow
	Pager Pager
	Empty *Empty
}

// DecidedRow is one decision.
type DecidedRow struct {
	URL     string
	What    Text
	Sub     Text
	State   State
	How     Text // who, and why
	Amount  *Money
	Release string // "in 8 s", "released", "to be confirmed"
	At      Time
}

// Runs lists runs.
type Runs struct {
	Page
	Name, Agent string
	State       []Option
	Rows        []RunRow
	Pager       Pager
	Empty       *Empty
}

// RunRow is one run.
type RunRow struct {
	URL         string
	Name, Agent Text
	State       State
	Open        string // what keeps it, "" for nothing
	Holder      Text
	Opened      Time
}

// Run is one run with its effects and holders.
type Run struct {
	Page
	Name    Text
	State   State
	Lead    string
	Facts   []Fact
	Rows    []DecidedRow
	Pager   Pager
	Holders []Holder
	Refused []Event
}

// Holder is who held the run, and when.
type Holder struct {
	Epoch, Worker string
	From, To      Time
	How           string
}

// Audit is a page of the audit trail.
type Audit struct {
	Page
	People   []Option
	Action   string
	Outcome  []Option
	Subject  string
	From, To string
	Zone     string
	Problem  string
	CSV      string
	JSONL    string
	Rows     []AuditRow
	Pager    Pager
	Empty    *Empty
}

// AuditRow is one line of the trail.
type AuditRow struct {
	At            Time
	Actor         Text
	Action        string
	Denied        bool
	Subject       Text
	SubjectURL    string
	Before, After Text
	Note          Text
	Via           string
}

// People lists who has access.
type People struct {
	Page
	Rows    []PersonRow
	Roles   []string
	Token   string
	Admin   bool
	Problem string
	Name    string
	Email   string
	Invite  string // a link, shown once
	For     string
}

// PersonRow is one person.
type PersonRow struct {
	ID, Name, Email string
	Roles           []Option
	RolesText       string
	Disabled        bool
	Since           Time
	Was             string // the roles as the page showed them
	Token           string
	Own             bool
}

// You are the person's own tokens and time zone.
type You struct {
	Page
	Tokens  []TokenRow
	Token   string
	Secret  string // a new token, shown once
	Zone    string
	Problem string
}

// TokenRow is one of a person's tokens.
type TokenRow struct {
	ID, Name, Hint string
	Made, Expires  Time
	Revoked        bool
	Token          string
}

// Health says whether the machine behind the pages lives.
type Health struct {
	Page
	Lines []HealthLine
	Forms []GapForm // a log gap, a copy, log files with an alarm
}

// HealthLine is one thing that is looked at.
type HealthLine struct {
	Name  string
	State State
	Text  string
}

// GapForm acknowledges a log gap or ends it, or acknowledges that a log file was changed
// or that a copied database belongs where it is.
type GapForm struct {
	ID, Title, Question  string // ID is that of the section
	File                 string // number of the log file, "" for the gap
	Text, Action, Button string
	Token, Problem       string
	CanAct               bool
}
