package views

// MoneyList is a list of finance's: what is owed back, or what is to be claimed.
type MoneyList struct {
	Page
	Title, Lead string
	Tabs        []NavItem
	Filter      MoneyFilter
	Note        string // what the figures stand for: as of when, in which zone
	Totals      *Table
	Later       string // where the totals are, when they are still added up
	Rows        Table
	Pager       Pager
	Empty       *Empty
	Downloads   []Link
}

// MoneyFilter is the filter form of such a list.
type MoneyFilter struct {
	Action  string
	Open    bool
	Selects []Selector
	Inputs  []Input
	Hidden  []Option // Value is the name, Label what it holds
	Problem string
	Active  []string
}

// Selector is a named choice.
type Selector struct {
	Label, Name string
	Options     []Option
}

// Input is a field to type into. Type is "text" or "date".
type Input struct {
	Label, Name, Value, Type, Hint string
	Needed                         bool
}

// Table is rows under headings.
type Table struct {
	Caption string
	Head    []Cell // only Text and Num
	Rows    [][]Cell
	Stacked bool // in blocks: side by side its columns do not fit a usual window
}

// Cell is one cell; what is not there is left out.
type Cell struct {
	Text  Text
	Sub   Text
	URL   string // of Text
	Money *Money
	State *State
	Time  Time
	Num   bool
	Late  bool
}

// MoneySheet is one thing of finance's, and everything that hangs on it.
type MoneySheet struct {
	Page
	Crumb   Link
	Title   Text
	Lead    string
	State   *State
	Amount  *Money
	Blocked string // what stands in the way, in words
	Facts   []Fact
	Figures []Figure
	Groups  []Group
	Tables  []Table
	History []Event
	Acts    []MoneyAct // what this person may do; each leads to its own page
	Links   []Link
}

// Figure is an amount with what it is.
type Figure struct {
	Label string
	Money *Money
	Text  string
}

// Group is the figures of one asset.
type Group struct {
	Title   Text
	Sub     string
	State   State
	Problem string
	Figures []Figure
}

// MoneyAct is the beginning of one thing to do: a form that only asks.
type MoneyAct struct {
	Title, Text string
	Action      string // a page to confirm it on
	Hidden      []Option
	Inputs      []Input
	Selects     []Selector
	Button      string
	First       bool
}

// MoneyConfirm shows an act once more, with what it means.
type MoneyConfirm struct {
	Page
	Back      Link
	What      Text
	Statement string
	Amount    *Money
	To        Text // where money goes
	Next      []string
	Problem   string
	Action    string
	Token     string
	Hidden    []Option
	NoteLabel string // "" where no note is asked for
	NoteValue string
	Needed    bool
	Button    string
	Danger    bool
}
