package views

// Observe says what enforcing would have done with the calls of tools in mode observe.
type Observe struct {
	Page
	Since []Option
	Tool  string // "" for all
	Tools []ObservedTool
	Rows  []ObservedRow
	Pager Pager
	Empty *Empty
}

// ObservedTool is one tool's sums.
type ObservedTool struct {
	Name Text
	URL  string // its calls alone
	Mark State
	Sums []ObservedSum
}

// ObservedSum is one line of it.
type ObservedSum struct {
	Calls, Words string
	Amounts      []Money
	Unpriced     string
}

// ObservedRow is one call that would have been stopped, or asked about.
type ObservedRow struct {
	What, Sub Text
	State     State
	Why       Text
	MetURL    string // the effect because of which; "" where there is none
	Amount    *Money
	At        Time
}
