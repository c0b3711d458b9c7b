package agent

import "quittance/client"

// Event is what an agent did, for whoever started it.
type Event struct {
	Kind      Kind                `json:"event"`
	Turn      int64               `json:"turn,omitempty"` // the last complete one
	Payment   string              `json:"payment,omitempty"`
	Replayed  bool                `json:"replayed,omitempty"`   // answered from the record
	DecidedBy string              `json:"decided_by,omitempty"` // of what was replayed
	Waiting   []client.WaitingFor `json:"waiting_for,omitempty"`
}

// Kind says what an [Event] is about.
type Kind string

// The kinds, in the order of a run.
const (
	Started  Kind = "started" // Turn tells where it goes on
	Saved    Kind = "saved"
	Paid     Kind = "paid"
	Paused   Kind = "paused"
	Finished Kind = "finished"
)
