package effects

import (
	"time"
)

// Open asks for the lease of a run, opening the run when it is new.
type Open struct {
	Account     int64
	RunID       string
	Agent       string
	Worker      string
	AttemptID   string
	Lease       time.Duration // 2 s to 10 min; 0 means 60 s
	LogPosition string
}

// Claim asks for the lease of any ready run of one of the agents.
type Claim struct {
	Account   int64
	Agents    []string
	Worker    string
	AttemptID string
	Lease     time.Duration
	Wait      time.Duration // how long to wait for a run to become ready; at most [MaxWait]
}

// Lease is the right to act for a run.
type Lease struct {
	RunID      string
	Agent      string
	State      string // "running", or "paused" when the holder asked again
	Token      string // secret
	Epoch      int64
	ExpiresAt  time.Time
	Checkpoint *CheckpointInfo // nil when none was saved
	// Volatile are, per tool, the argument paths left out of the key, as they were when
	// the run opened: a client leaves them out when it counts occurrences.
	Volatile    map[string][]string
	LogPosition string
}

// CheckpointInfo names the checkpoint to resume from.
type CheckpointInfo struct {
	Turn    int64
	SavedAt time.Time
	Damaged bool // it is not what was saved, and no earlier one is
}

// Checkpoint is an agent's saved state: State and Occurrences are JSON as sent.
type Checkpoint struct {
	CheckpointInfo
	State       []byte
	Occurrences []byte
	Skipped     []CheckpointInfo // later ones that are not what was saved
}

// RunView is a run as its agent sees it.
type RunView struct {
	RunID       string
	Agent       string
	State       string
	Epoch       int64
	HeldBy      string
	ExpiresAt   time.Time // zero: no lease
	OpenedAt    time.Time
	ClosedAt    time.Time // zero: open
	Refused     int64
	WaitingFor  []Waiting
	Open        []OpenEffect
	LogPosition string
}

// OpenEffect is an effect of a run that is not closed yet.
type OpenEffect struct {
	EffectID string
	Tool     string
	Key      string
	State    string
	Since    time.Time
}
