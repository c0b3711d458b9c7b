package effects

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"

	"quittance/ledger"
)

// Intent is what was asked for. Its columns never change. Zero values are NULL.
type Intent struct {
	ID            string       `db:"id" json:"id"`
	Account       int64        `db:"account_id" json:"account_id"`
	Run           int64        `db:"run_id" json:"run_id"`
	Key           ledger.Bytes `db:"key" json:"key"`
	ClientKey     string       `db:"client_key" json:"client_key,omitempty"`
	Tool          string       `db:"tool" json:"tool"`
	Occurrence    int          `db:"occurrence" json:"occurrence"`
	Arguments     string       `db:"arguments" json:"arguments"` // not loaded by [Load]
	CallDigest    ledger.Bytes `db:"call_digest" json:"call_digest"`
	BusinessKey   string       `db:"business_key" json:"business_key,omitempty"`
	Claim         ledger.Bytes `db:"claim" json:"claim"`
	ClaimWas      ledger.Bytes `db:"claim_was" json:"claim_was,omitempty"`
	CallClaim     bool         `db:"call_claim" json:"call_claim"`
	Summary       string       `db:"summary" json:"summary"`
	Amount        string       `db:"amount" json:"amount,omitempty"` // atomic units
	Currency      string       `db:"currency" json:"currency,omitempty"`
	Decimals      *int         `db:"decimals" json:"decimals,omitempty"`
	AmountProblem string       `db:"amount_problem" json:"amount_problem,omitempty"`
	CallID        string       `db:"call_id" json:"call_id,omitempty"`
	ClientTime    string       `db:"client_time" json:"client_time,omitempty"`
	Context       string       `db:"context" json:"context,omitempty"` // not loaded by [Load]
	RepeatOf      string       `db:"repeat_of" json:"repeat_of,omitempty"`
	OpenedAt      ledger.Time  `db:"opened_at" json:"opened_at"`
}

// Standing is where an effect stands: the columns that change, each time together
// with a version and an event that carries all of them. Zero values are NULL.
type Standing struct {
	State          State        `db:"state" json:"state"`
	Why            Why          `db:"why" json:"why,omitempty"`
	Version        int64        `db:"version" json:"version"`
	Attempts       int          `db:"attempts" json:"attempts"`
	Fence          int64        `db:"fence" json:"fence"`
	Deadline       ledger.Time  `db:"deadline" json:"deadline"`
	Moment         ledger.Time  `db:"moment" json:"moment"`
	Gap            bool         `db:"gap" json:"gap"`
	DecidedBy      By           `db:"decided_by" json:"decided_by,omitempty"`
	DecidedFrom    State        `db:"decided_from" json:"decided_from,omitempty"`
	Decision       string       `db:"decision" json:"decision,omitempty"`
	Proposal       string       `db:"proposal" json:"proposal,omitempty"`
	Early          bool         `db:"early" json:"early"`
	ReleaseAt      ledger.Time  `db:"release_at" json:"release_at"`
	Released       bool         `db:"released" json:"released"`
	UsedAt         ledger.Time  `db:"used_at" json:"used_at"`
	Reference      string       `db:"reference" json:"reference,omitempty"`
	SameAs         string       `db:"same_as" json:"same_as,omitempty"`
	ResultSize     int64        `db:"result_size" json:"result_size,omitempty"`
	ResultDigest   ledger.Bytes `db:"result_digest" json:"result_digest,omitempty"`
	Contradictions int          `db:"contradictions" json:"contradictions"`
	WaitingSince   ledger.Time  `db:"waiting_since" json:"waiting_since"`
	ChangedAt      ledger.Time  `db:"changed_at" json:"changed_at"`
}

// Row is an effect. Texts that may be large (arguments, result, error, context)
// are not loaded with it.
type Row struct {
	Intent
	Standing
	ClaimOwner string `db:"claim_owner" json:"-"` // who holds its claim; "" when free
	LastEvent  int64  `db:"last_event" json:"-"`
}

// Texts change with the standing but are written only when Set.
type Texts struct {
	Set    bool   `json:"set_texts"`
	Result string `json:"result,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Attempt is one try at performing an effect.
type Attempt struct {
	Effect    string      `db:"effect_id" json:"effect_id"`
	Number    int         `db:"number" json:"number"`
	Fence     int64       `db:"fence" json:"fence"`
	AttemptID string      `db:"attempt_id" json:"attempt_id"`
	Epoch     int64       `db:"epoch" json:"epoch"`
	BegunAt   ledger.Time `db:"begun_at" json:"begun_at"`
	Deadline  ledger.Time `db:"deadline" json:"deadline"`
}

// Event is one row of the effects log. Effect "" and Version 0 are an event of the
// run itself.
type Event struct {
	ID      int64        `db:"id" json:"-"`
	At      ledger.Time  `db:"at" json:"at"`
	Run     int64        `db:"run_id" json:"run_id"`
	Effect  string       `db:"effect_id" json:"effect_id,omitempty"`
	Version int64        `db:"version" json:"version,omitempty"`
	Kind    string       `db:"kind" json:"kind"`
	Data    string       `db:"data" json:"data"`
	Digest  ledger.Bytes `db:"digest" json:"digest"`
}

// Payload is what Data holds for an event of an effect.
type Payload struct {
	Standing
	Arguments string `json:"arguments_digest,omitempty"` // with the intent only
	Cause     any    `json:"cause,omitempty"`            // what happened, for people
}

// Seal fills Data and Digest. The digest covers everything but the id: run,
// effect, version, kind, time in microseconds, data, each length-marked.
func (e *Event) Seal(payload any) error {
	data, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	e.Data = string(data)
	e.Digest = e.Sum()
	return nil
}

// Sum is the digest the event should have.
func (e *Event) Sum() []byte {
	h := sha256.New()
	part := func(b []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	num := func(v int64) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(v))
		part(n[:])
	}
	num(e.Run)
	part([]byte(e.Effect))
	num(e.Version)
	part([]byte(e.Kind))
	num(e.At.UnixMicro())
	part([]byte(e.Data))
	return h.Sum(nil)
}
