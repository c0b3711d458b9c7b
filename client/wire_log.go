package client

import "time"

// LogState tells whether the server's log is known to have lost events.
type LogState struct {
	State          string     `json:"state" doc:"whole; behind: nothing is released until a person acknowledges it; acknowledged: new effects start as interrupted until a person ends it."`
	FoundAt        *time.Time `json:"found_at,omitempty"`
	FoundBy        string     `json:"found_by,omitempty" doc:"What showed it."`
	AcknowledgedAt *time.Time `json:"acknowledged_at,omitempty"`
	AcknowledgedBy string     `json:"acknowledged_by,omitempty"`
}

// LogNote acknowledges or ends a log gap.
type LogNote struct {
	Note string `json:"note" doc:"What happened to the database, or why the gap is over."`
}
