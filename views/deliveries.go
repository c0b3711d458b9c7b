package views

// Deliveries is the log of what endpoints were told.
type Deliveries struct {
	Page
	Endpoint string
	State    []Option
	Rows     []DeliveryRow
	Pager    Pager
	Empty    *Empty
}

// DeliveryRow is one delivery.
type DeliveryRow struct {
	URL, RunURL string
	Run, Sub    Text
	State       State
	Known       Text // what the last attempt came to, and when it is sent again
	Made        Time
}

// Delivery is one delivery with its attempts.
type Delivery struct {
	Page
	Row      DeliveryRow
	Facts    []Fact
	Body     Text
	Attempts []DeliveryAttempt
	Replay   string // where the form leads; "" for who may not
	Token    string
}

// DeliveryAttempt is one try.
type DeliveryAttempt struct {
	Number, Took string
	At           Time
	State        State
	Problem      Text
}
