package views

// Receipt is the public page of a payment.
type Receipt struct {
	Assets  string
	State   State
	Lead    string // what it means, in the payer's words
	Amount  *Money
	Rows    []ReceiptRow
	Refund  []ReceiptRow // what goes back; empty where nothing does
	Next    string
	Printed string // when it was made
}

// ReceiptRow is one line. Long ones break anywhere.
type ReceiptRow struct {
	Name  string
	Value Text
	Money *Money
	Time  Time
	URL   string
}
