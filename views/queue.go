package views

// Queue is the list of what waits for a person.
type Queue struct {
	Page
	Figures  Figures
	Views    []NavItem
	Filter   Filter
	Rows     []QueueRow
	Pager    Pager
	Empty    *Empty
	Token    string // of the form that makes a bulk order
	Query    string // the filter as the bulk form carries it
	Filtered bool
	CanBulk  bool
	Closed   bool // the rows are closed effects: nothing to choose
	CSV      Link // of every effect of the filter's tool and days
}

// Figures are what waits, in numbers.
type Figures struct {
	Waiting string
	Stake   *Money // in the currency that most effects are of
	Also    string // "at stake, 31.50 EUR and 3 more currencies"
	Oldest  string
	Overdue string
	Later   string // where the numbers are, when they are still counted
}

// Filter is the filter form as it was sent.
type Filter struct {
	Text     string
	Open     bool
	Tool     string
	Tools    []string
	Agent    string
	Agents   []string
	Run      string
	Key      string
	State    []Option
	Closed   []Option
	Least    string
	Most     string
	Currency []Option
	Age      []Option
	From, To string
	Zone     string
	Problem  string
	ClearURL string
	Active   []string // in words
}

// QueueRow answers four questions.
type QueueRow struct {
	ID, URL, Version string
	What             Text
	Tool, Agent, Run Text
	RunFull          string
	State            State
	Known            Text
	Amount           *Money
	AmountProblem    string
	Waiting          string
	Since            Time
	Overdue          bool
}

// Empty says why a list is empty, and that it is alive.
type Empty struct{ Title, Text string }
