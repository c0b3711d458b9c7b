package client

import (
	"encoding/json"
	"time"
)

// The states of a run.
const (
	RunRunning   = "running"
	RunPaused    = "paused"
	RunReady     = "ready"
	RunFinished  = "finished"
	RunFailed    = "failed"
	RunCancelled = "cancelled"
)

// OpenRequest asks for the lease of a run, which it creates when it is new.
type OpenRequest struct {
	Agent        string `json:"agent" doc:"What kind of agent this is; a pool claims by it."`
	Worker       string `json:"worker" doc:"Which process asks, for people to read."`
	AttemptID    string `json:"attempt_id" doc:"Chosen by the caller; the same one again gets the same lease while it holds."`
	LeaseSeconds int    `json:"lease_seconds,omitempty" doc:"2 to 600; 60 when absent."`
	LogPosition  string `json:"log_position,omitempty"`
}

// ClaimRequest asks for any run that is ready to go on.
type ClaimRequest struct {
	Agents       []string `json:"agents" doc:"The kinds of agent this worker can be." minItems:"1"`
	Worker       string   `json:"worker"`
	AttemptID    string   `json:"attempt_id"`
	LeaseSeconds int      `json:"lease_seconds,omitempty" doc:"2 to 600; 60 when absent."`
}

// Lease is the right to act for a run. Whoever knows Token is its holder.
type Lease struct {
	Token     string    `json:"token" doc:"Secret; given to every call that acts for the run."`
	Epoch     int64     `json:"epoch" doc:"Higher for each new holder."`
	ExpiresAt time.Time `json:"expires_at" doc:"On the server's clock; a holder counts lease_seconds from before it asked."`
}

// CheckpointMark says that a checkpoint exists.
type CheckpointMark struct {
	Turn    int64     `json:"turn"`
	SavedAt time.Time `json:"saved_at"`
	Damaged bool      `json:"damaged,omitempty" doc:"It is not what was saved: its digest is another."`
}

// RunLease answers open and claim.
type RunLease struct {
	RunID       string              `json:"run_id"`
	Agent       string              `json:"agent,omitempty"`
	State       string              `json:"state" enum:"running,paused,ready,finished,failed,cancelled"`
	Lease       Lease               `json:"lease"`
	Checkpoint  *CheckpointMark     `json:"checkpoint,omitempty" doc:"Absent when nothing was saved yet."`
	Volatile    map[string][]string `json:"volatile,omitempty" doc:"Per tool the argument paths left out of the key, fixed when the run began: a client leaves them out when it counts occurrences."`
	LogPosition string              `json:"log_position,omitempty"`
}

// LeaseRequest is the body of heartbeat and release.
type LeaseRequest struct {
	Lease       string `json:"lease" doc:"The secret token of the lease."`
	LogPosition string `json:"log_position,omitempty"`
}

// LeaseAnswer answers heartbeat, release and close: the run's state tells a holder
// that its run was paused.
type LeaseAnswer struct {
	State       string     `json:"state" enum:"running,paused,ready,finished,failed,cancelled"`
	ExpiresAt   *time.Time `json:"expires_at,omitempty" doc:"Absent when nobody holds the run."`
	LogPosition string     `json:"log_position,omitempty"`
}

// SaveCheckpoint keeps the run's state after a completed turn. Occurrences travels
// with it so that a resumed run goes on counting where this one stood.
type SaveCheckpoint struct {
	Lease       string          `json:"lease" doc:"The secret token of the lease."`
	State       json.RawMessage `json:"state" doc:"Opaque to the server; returned byte for byte."`
	Occurrences map[string]int  `json:"occurrences,omitempty" doc:"How many identical calls came back, by the client's own digest of tool and arguments."`
	LogPosition string          `json:"log_position,omitempty"`
}

// Checkpoint is the last one saved by the highest epoch that is what was saved.
type Checkpoint struct {
	Turn        int64            `json:"turn"`
	SavedAt     time.Time        `json:"saved_at"`
	State       json.RawMessage  `json:"state"`
	Occurrences map[string]int   `json:"occurrences,omitempty"`
	Skipped     []CheckpointMark `json:"skipped,omitempty" doc:"Later ones that are damaged: the run goes on from an earlier turn, and what it did since is replayed."`
	LogPosition string           `json:"log_position,omitempty"`
}

// CloseRequest ends a run for good.
type CloseRequest struct {
	Lease       string `json:"lease" doc:"The secret token of the lease."`
	Outcome     string `json:"outcome" enum:"finished,failed,cancelled"`
	LogPosition string `json:"log_position,omitempty"`
}

// RunView is a run as anybody of its account may read it. It never holds the
// lease's token.
type RunView struct {
	RunID       string       `json:"run_id"`
	Agent       string       `json:"agent,omitempty"`
	State       string       `json:"state" enum:"running,paused,ready,finished,failed,cancelled"`
	HeldBy      *HeldBy      `json:"held_by,omitempty" doc:"Who holds the lease, if anybody."`
	OpenedAt    time.Time    `json:"opened_at"`
	ClosedAt    *time.Time   `json:"closed_at,omitempty"`
	Refused     int64        `json:"refused,omitempty" doc:"How many starts and begins were refused."`
	WaitingFor  []WaitingFor `json:"waiting_for,omitempty" doc:"What must be decided, or released, before the run may go on."`
	OpenEffects []OpenEffect `json:"open_effects,omitempty"`
	LogPosition string       `json:"log_position,omitempty"`
}

// OpenEffect is an effect that is not closed.
type OpenEffect struct {
	EffectID string    `json:"effect_id"`
	Tool     string    `json:"tool"`
	Key      string    `json:"key"`
	State    string    `json:"state"`
	Since    time.Time `json:"since"`
	URL      string    `json:"url,omitempty" doc:"Its page."`
}

// HeldBy says who holds a lease, never its token.
type HeldBy struct {
	Worker    string     `json:"worker"`
	Epoch     int64      `json:"epoch,omitempty"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// WaitingFor names one reason for a pause.
type WaitingFor struct {
	EffectID  string     `json:"effect_id"`
	Reason    string     `json:"reason" enum:"interrupted,held,contradicted,releasing" doc:"releasing: decided, and not yet visible to agents."`
	Tool      string     `json:"tool,omitempty"`
	ReleaseAt *time.Time `json:"release_at,omitempty" doc:"For releasing: when."`
	URL       string     `json:"url,omitempty" doc:"The page where a person decides it."`
}
