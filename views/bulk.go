package views

// Bulk is a frozen set of effects: before its verdict, and after.
type Bulk struct {
	Page
	Name, Lead string
	Count      string
	Sums       []Money
	Left       []BulkRow // left out, with why
	LeftMore   string
	Rows       []BulkRow
	RowsMore   string
	Order      *BulkOrder
	Progress   *BulkProgress
}

// BulkRow is one effect of a set.
type BulkRow struct {
	URL    string
	What   Text
	Run    Text
	Amount *Money
	Why    string // why it is left out
	State  *State // what became of it
	Detail string
}

// BulkOrder is the form that gives one verdict on all of them.
type BulkOrder struct {
	Action, Token string
	Name, Note    string
	Choices       []Choice
	Typing        string // how the field is labelled
	Problem       string
}

// BulkProgress says how far the work is, and can take it back.
type BulkProgress struct {
	State         State
	Text          string
	Note          Text
	Verdict       string
	Action, Token string
	CanUndo       bool
	Problem       string
}
