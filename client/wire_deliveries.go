package client

import "time"

// Deliveries is a page of the log of what endpoints were told, latest first.
type Deliveries struct {
	Deliveries []Delivery `json:"deliveries"`
	NextCursor string     `json:"next_cursor,omitempty"`
}

// Delivery is what one endpoint is told of one run that became ready.
type Delivery struct {
	DeliveryID string     `json:"delivery_id"`
	WebhookID  string     `json:"webhook_id" doc:"The header webhook-id of each attempt."`
	Endpoint   string     `json:"endpoint" doc:"Its name in the policy."`
	RunID      string     `json:"run_id"`
	Account    string     `json:"account"`
	Agent      string     `json:"agent"`
	ReadyAt    time.Time  `json:"ready_at"`
	MadeAt     time.Time  `json:"made_at"`
	State      string     `json:"state" enum:"due,delivered,overtaken,given_up" doc:"overtaken: the run was taken, or paused again, before the endpoint answered; given_up: nobody answered in days."`
	Attempts   int        `json:"attempts"`
	NextAt     *time.Time `json:"next_at,omitempty" doc:"When it is sent again."`
	EndedAt    *time.Time `json:"ended_at,omitempty"`
	Status     int        `json:"status,omitempty" doc:"The HTTP status of the last attempt; absent when there was no answer."`
	Problem    string     `json:"problem,omitempty" doc:"Why the last attempt failed."`
}

// DeliveryView is one delivery with what was sent and what became of each attempt.
type DeliveryView struct {
	Delivery
	Body string            `json:"body" doc:"Exactly what is sent."`
	Log  []DeliveryAttempt `json:"log"`
}

// DeliveryAttempt is one answer of an endpoint, or why there was none.
type DeliveryAttempt struct {
	Number  int       `json:"number"`
	At      time.Time `json:"at"`
	Seconds float64   `json:"seconds"`
	Status  int       `json:"status,omitempty"`
	Problem string    `json:"problem,omitempty"`
}
