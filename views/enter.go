package views

// SignIn is the page for whoever is not signed in.
type SignIn struct {
	Page
	Next    string
	Email   string
	Problem string
	Notice  string // e.g. that the session ended and what was typed is kept
}

// OneTime is what a one-time link opened; Invite asks for a password.
type OneTime struct {
	Page
	Action  string
	Name    string
	Email   string
	Invite  bool
	Problem string
}

// Failure is any page that could not be shown.
type Failure struct {
	Page
	Heading, Text string
	RequestID     string
	Back          *Link
}
