package client

import "time"

// ObserveReport says what enforcing would have done with the calls of tools in mode
// observe.
type ObserveReport struct {
	Since *time.Time     `json:"since,omitempty" doc:"Calls from then on are counted; absent: all."`
	Tools []ObservedTool `json:"tools"`
}

// ObservedTool is the report on one tool.
type ObservedTool struct {
	Tool     string        `json:"tool"`
	Observed bool          `json:"observed" doc:"The policy in force still observes it."`
	Sums     []ObservedSum `json:"sums"`
}

// ObservedSum is how many calls one answer would have met, and the money in them.
type ObservedSum struct {
	What     string   `json:"what" enum:"calls,replay,hold,unknown,pause,wait,refuse" doc:"calls: all; replay: the outcome on record would have been given instead; hold: held for a person, as an overlap or without a business key; unknown: nobody knows what came of it, and a person would have been asked; pause: made again while that was so; wait: its run would have waited for another call; refuse: the caller would have been turned away."`
	Calls    int64    `json:"calls"`
	Amounts  []Amount `json:"amounts,omitempty" doc:"A sum for each currency."`
	Unpriced int64    `json:"unpriced,omitempty" doc:"Calls without a readable amount."`
}

// ObservedCalls is a page of the calls that enforcing would have stopped, latest first.
type ObservedCalls struct {
	Calls      []ObservedCall `json:"calls"`
	NextCursor string         `json:"next_cursor,omitempty"`
}

// ObservedCall is one of them.
type ObservedCall struct {
	CallID        string    `json:"call_id" doc:"What its begin gave as effect_id."`
	RunID         string    `json:"run_id"`
	Account       string    `json:"account"`
	Agent         string    `json:"agent"`
	Tool          string    `json:"tool"`
	Summary       string    `json:"summary"`
	BusinessKey   string    `json:"business_key,omitempty"`
	Amount        *Amount   `json:"amount,omitempty"`
	AmountProblem string    `json:"amount_problem,omitempty"`
	Attempt       int       `json:"attempt"`
	BegunAt       time.Time `json:"begun_at"`
	Would         string    `json:"would" enum:"proceed,replay,hold,pause,wait,refuse"`
	Why           string    `json:"why,omitempty"`
	MetCall       string    `json:"met_call,omitempty" doc:"The observed call because of which."`
	MetEffect     string    `json:"met_effect,omitempty" doc:"The effect because of which."`
	Outcome       string    `json:"outcome,omitempty" doc:"What its agent said; absent when it never did."`
	Unknown       bool      `json:"unknown,omitempty" doc:"Nobody knows what came of it: a person would have been asked."`
	Reference     string    `json:"reference,omitempty"`
}
