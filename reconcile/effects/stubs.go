package effects

import (
	"context"
	"errors"
	"time"
)

// Engine decides everything about runs and effects. Its methods return a *Refusal
// (errors.As) where a caller can act on the answer; any other error is internal.
type Engine struct{}

var errStub = errors.New("not built yet")

// DecideResult is what became of one verdict: exactly one field is set.
type DecideResult struct {
	Answer  *DecideAnswer
	Refusal *Refusal
}

// GapView is an open log gap.
type GapView struct {
	FoundAt        time.Time
	FoundBy        string
	AcknowledgedAt time.Time
	AcknowledgedBy string
}

func (e *Engine) Apply(ctx context.Context, ops []Op) ([]Answer, error) { return nil, errStub }
func (e *Engine) Open(ctx context.Context, o Open) (Lease, error)       { return Lease{}, errStub }
func (e *Engine) Claim(ctx context.Context, c Claim) (*Lease, error)    { return nil, errStub }
func (e *Engine) Heartbeat(ctx context.Context, account int64, runID, lease, logPosition string) (RunView, error) {
	return RunView{}, errStub
}
func (e *Engine) Release(ctx context.Context, account int64, runID, lease, logPosition string) (RunView, error) {
	return RunView{}, errStub
}
func (e *Engine) Close(ctx context.Context, account int64, runID, lease, outcome, logPosition string) (RunView, error) {
	return RunView{}, errStub
}
func (e *Engine) SaveCheckpoint(ctx context.Context, account int64, runID, lease string, turn int64, state, occurrences []byte, logPosition string) (string, error) {
	return "", errStub
}
func (e *Engine) Checkpoint(ctx context.Context, account int64, runID string) (Checkpoint, error) {
	return Checkpoint{}, errStub
}

// Run reads a run; with wait > 0 and a paused run it answers when the run may go
// on, or after wait.
func (e *Engine) Run(ctx context.Context, account int64, runID string, wait time.Duration) (RunView, error) {
	return RunView{}, errStub
}

// Effect reads one effect; account 0 is a person, who sees every account's.
func (e *Engine) Effect(ctx context.Context, account int64, effectID string) (EffectView, error) {
	return EffectView{}, errStub
}
func (e *Engine) Queue(ctx context.Context, q QueueQuery) (QueuePage, error) {
	return QueuePage{}, errStub
}

// Decide records verdicts, one result each in order. A list with a missing or
// repeated effect is refused whole (CodeInvalid) and changes nothing.
func (e *Engine) Decide(ctx context.Context, p Person, list []Decide) ([]DecideResult, error) {
	return nil, errStub
}
func (e *Engine) Undo(ctx context.Context, p Person, u Undo) (DecideAnswer, error) {
	return DecideAnswer{}, errStub
}
func (e *Engine) AddEvidence(ctx context.Context, p Person, a AddEvidence) (DecideAnswer, error) {
	return DecideAnswer{}, errStub
}
func (e *Engine) Gap(ctx context.Context) (*GapView, error)                       { return nil, errStub }
func (e *Engine) AcknowledgeGap(ctx context.Context, p Person, note string) error { return errStub }
func (e *Engine) EndGap(ctx context.Context, p Person, note string) error         { return errStub }
