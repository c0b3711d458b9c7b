package views

// Effect is everything that is known of one effect, and what can be done about it.
type Effect struct {
	Page
	ID, Version string
	Crumbs      []Link
	State       State
	Amount      *Money
	What        Text
	Lead        string // in plain words: who wanted it and when
	NotKnown    string // what is not known, "" when all is
	NotKnownLed string // its first, bold words
	Warnings    []string
	Facts       []Fact
	Looks       *Looks
	Line        []Event
	Zone        string
	Places      []Place
	Arguments   Code
	Result      *Code
	Error       *Code
	Overlaps    []Overlap
	Files       []File
	Panel       Panel
	CanAct      bool
	FileToken   string
	FileURL     string
}

// Fact is one line of what the effect is.
type Fact struct {
	Name  string
	Value Text
	URL   string
}

// Condition is one thing that must hold before a person's "not taken" can be sure.
type Condition struct {
	Met  bool
	Text string
}

// Event is one line of the history.
type Event struct {
	Day    string // set on the first of a day
	At     Time
	Kind   string // "plain" | "unknown" | "info" | "ok" | "danger" | "person"
	Title  Text
	Detail Text
	Fold   *Fold
}

// Place is where to check.
type Place struct {
	Text Text
	URL  string
}

// Code is JSON or text as it was sent, readable at any size.
type Code struct {
	Text     Text
	Cut      string // what is not shown, "" when all is
	Download string
}

// Overlap is another effect with the same business key.
type Overlap struct {
	URL, Run, Opened string
	State            State
	Amount           *Money
	Holds            bool
	Same             bool
	Differences      []Difference
}

// Difference is one place where two calls differ.
type Difference struct{ Where, Here, There Text }

// File is a photo or PDF kept with the effect.
type File struct {
	URL, Size, Digest, By string
	Name                  Text
	At                    Time
}

// Panel is what can be done now: the parts that are set are shown.
type Panel struct {
	Verdict *Verdict
	Second  *Second
	Hold    *Hold
	Contra  *Contradiction
	Closed  *Closed
	Typed   Text   // what the reader had typed before it was decided otherwise
	Reading string // why nothing can be done by this person
}

// Verdict is the form that asks what happened. It is answered on a page of its own.
type Verdict struct {
	Action, Token, Version string
	Title                  string
	Choices                []Choice
	Conditions             []Condition
	Proof                  string   // how far a proof by look-ups is
	Key                    string   // what is left of the vendor's own key
	Others                 []Option // of "the same as"
	Which                  []Option // records that were found: which of them it is
	NotOurs                []Hit    // records that speak against "no"
	Note, Reference        string
	Result, ResultHint     string
	NextLook               string
	Problem                string
	Restored               string // "what you typed at 14:02 was kept"
	Stale                  string // the effect moved on while this was typed
}

// Choice is one verdict and what will happen next.
type Choice struct {
	Value, Title, Next string
	Danger, Picked     bool
}

// Second is a verdict that waits for another person.
type Second struct {
	Who, Verdict, Next string
	At                 Time
	Note               Text
	Reference          Text
	Own                bool // the reader gave it: they cannot confirm it
	ReviewURL          string
	Danger             bool
	SendBack           string // action
	Why                string // as it was typed
	Token, Version     string
	Problem            string
}

// Hold is a decision that can still be taken back.
type Hold struct {
	Title, Text    string
	Release        Time
	Waits          bool   // counts down to Release
	Confirm        string // address of the page that confirms an early verdict, "" for none
	ConfirmText    string
	Action         string // of undoing
	Why            string // as it was typed
	Token, Version string
	Problem        string
	CanUndo        bool
}

// Contradiction is an incident that somebody has to look at.
type Contradiction struct {
	Text           string
	Lines          []string
	Action         string
	Token, Version string
	Note           string
	Problem        string
	CanAct         bool
}

// Closed says how an effect was closed, by whom and when.
type Closed struct {
	State State
	How   string
	Who   string
	At    Time
	Used  string // "resumed 14:07:31"
	Note  Text
}

// Confirm is the page that shows a verdict once more before it is recorded.
type Confirm struct {
	Page
	Back      string
	What      Text
	Amount    *Money
	Statement string   // the verdict in words
	Next      []string // what will happen
	Danger    bool
	Button    string
	Action    string
	Token     string
	Hidden    []Option // fields that are sent on
	Note      Text
	NoteBy    string // whose note it is, when not the reader's
	AskNote   bool
	NoteValue string
	Reference Text
	Result    *Code
	Hits      []Hit // what a look-up or another attempt found, which the verdict denies
	Second    string
	Problem   string
}

// Hit is something that was seen and speaks against the verdict.
type Hit struct {
	Reference, Text string
	Ticked          bool
}
