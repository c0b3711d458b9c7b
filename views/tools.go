package views

// Tools shows the policy in force, and how its look-ups go.
type Tools struct {
	Page
	Digest string
	Tools  []Tool
	Source Text
	Try    *TryLookup // nil for those who may not
}

// Tool is what is declared of one tool.
type Tool struct {
	Name   Text
	Marks  []State // such as "no look-up"
	Facts  []Fact
	Lookup *ToolLookup
}

// ToolLookup is how a tool's downstream is asked, and how that went lately.
type ToolLookup struct {
	Title   string
	Facts   []Fact
	Error   Text // the last that could not look
	ErrorAt Time
	Mended  bool // it has worked since
}

// TryLookup is the form that tests a look-up, and what came of it.
type TryLookup struct {
	Action, Token string
	Tools         []Option
	Tool, Key     string
	Problem       string
	Result        *Tried
}

// Tried is what a tested look-up said.
type Tried struct {
	Looks  *Looks
	Fold   Fold
	Effect string // address of the call it was asked about, "" for none
	Result *Code
}
