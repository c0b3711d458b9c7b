// Package views holds the pages and the plain structs they show. A struct mirrors its
// screen: everything is decided and formatted before it gets here.
package views

// Page is what every page has around its content.
type Page struct {
	Title  string
	Assets string // path of the static files, ends in a slash
	Nav    []NavItem
	Person string // "" when nobody is signed in
	Roles  string
	Token  string // form token of signing out
	Zone   string // what times are shown in
	Loops  string // when the loops last ran
	Quiet  bool   // they run as they should
	Gap    string // why nothing is released, "" when all is well
	Live   string // address of the event stream, "" for a page that does not change
	Notice *Notice
}

// NavItem is one of the main pages.
type NavItem struct {
	Label, URL, Icon string
	Count            string
	Here             bool
}

// Notice says what became of what was just done.
type Notice struct {
	Kind string // "ok" | "warn" | "bad"
	Text string
}

// Link leads somewhere.
type Link struct{ Text, URL string }

// Time is a moment as the person reads it.
type Time struct {
	ISO  string // for programs
	Text string // with its zone
	UTC  string // for hovering
}

// Money is an amount.
type Money struct {
	Value, Code string
	Unsent      bool // asked for, and not sent: shown struck
}

// Text is text from outside, cut into pieces: what would be invisible or misleading is
// a marked piece.
type Text []Piece

// Piece is part of a text. Mark is "" for plain text; otherwise what the character is,
// and Text how it is shown.
type Piece struct{ Text, Mark string }

// State is a state as word, shape and colour.
type State struct {
	Kind string // "unknown" | "held" | "ok" | "danger" | "info" | "stop" | "plain"
	Word string
}

// Option is one of a choice.
type Option struct {
	Value, Label string
	Picked       bool
}

// Pager leads to the pages of a list.
type Pager struct{ First, Next string }
