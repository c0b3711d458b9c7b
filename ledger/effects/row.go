package effects

import (
	"crypto/sha256"
	"encoding/binary"

	"quittance/ledger"
)

// Intent is what was asked for. Its columns never change, but for what it claims, which
// [Rekey] writes. Zero values are NULL.
type Intent struct {
	ID            string       `db:"id"`
	Account       int64        `db:"account_id"`
	Run           int64        `db:"run_id"`
	Key           ledger.Bytes `db:"key"`
	ClientKey     string       `db:"client_key"`
	Tool          string       `db:"tool"`
	Occurrence    int          `db:"occurrence"`
	Arguments     string       `db:"arguments"` // not loaded by [Load]
	CallDigest    ledger.Bytes `db:"call_digest"`
	BusinessKey   string       `db:"business_key"`
	Claim         ledger.Bytes `db:"claim"`
	ClaimWas      ledger.Bytes `db:"claim_was"`
	CallClaim     bool         `db:"call_claim"`
	Summary       string       `db:"summary"`
	Amount        string       `db:"amount"` // atomic units
	Currency      string       `db:"currency"`
	Decimals      *int         `db:"decimals"`
	AmountProblem string       `db:"amount_problem"`
	CallID        string       `db:"call_id"`
	ClientTime    string       `db:"client_time"`
	Context       string       `db:"context"` // not loaded by [Load]
	RepeatOf      string       `db:"repeat_of"`
	OpenedAt      ledger.Time  `db:"opened_at"`
}

// Standing is where an effect stands: the columns that change, each time together
// with a version and an event that carries all of them. Zero values are NULL.
type Standing struct {
	State          State        `db:"state"`
	Why            Why          `db:"why"`
	Version        int64        `db:"version"`
	Attempts       int          `db:"attempts"`
	Fence          int64        `db:"fence"`
	Deadline       ledger.Time  `db:"deadline"`
	Moment         ledger.Time  `db:"moment"`
	Gap            bool         `db:"gap"`
	DecidedBy      By           `db:"decided_by"`
	DecidedFrom    State        `db:"decided_from"`
	Decision       string       `db:"decision"`
	Proposal       string       `db:"proposal"`
	Early          bool         `db:"early"`
	ReleaseAt      ledger.Time  `db:"release_at"`
	Released       bool         `db:"released"`
	UsedAt         ledger.Time  `db:"used_at"`
	Reference      string       `db:"reference"`
	SameAs         string       `db:"same_as"`
	ResultSize     int64        `db:"result_size"`
	ResultDigest   ledger.Bytes `db:"result_digest"`
	Contradictions int          `db:"contradictions"`
	WaitingSince   ledger.Time  `db:"waiting_since"`
	ChangedAt      ledger.Time  `db:"changed_at"`
}

// Row is an effect. Texts that may be large (arguments, result, error, context)
// are not loaded with it.
type Row struct {
	Intent
	Standing
	ClaimOwner    string `db:"claim_owner"`     // who holds its claim; "" when free
	ClaimWasOwner string `db:"claim_was_owner"` // the same of the claim under the earlier template
	LastEvent     int64  `db:"last_event"`
}

// Texts change with the standing but are written only when Set.
type Texts struct {
	Set    bool   `json:"set_texts"`
	Result string `json:"result,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Attempt is one try at performing an effect.
type Attempt struct {
	Effect    string      `db:"effect_id"`
	Number    int         `db:"number"`
	Fence     int64       `db:"fence"`
	AttemptID string      `db:"attempt_id"`
	Epoch     int64       `db:"epoch"`
	BegunAt   ledger.Time `db:"begun_at"`
	Deadline  ledger.Time `db:"deadline"`
}

// Event is one row of the effects log. Effect "" and Version 0 are an event of the
// run itself.
type Event struct {
	ID      int64        `db:"id"`
	At      ledger.Time  `db:"at"`
	Run     int64        `db:"run_id"`
	Effect  string       `db:"effect_id"`
	Version int64        `db:"version"`
	Kind    string       `db:"kind"`
	Data    string       `db:"data"`
	Digest  ledger.Bytes `db:"digest"`
}

// Seal fills Data and Digest of an event of an effect: its changing columns as they
// now are, the digest of the arguments ("" but for the first event), and what caused
// it, as JSON or nil.
func (e *Event) Seal(s *Standing, arguments string, cause []byte) {
	o := object{b: make([]byte, 0, 512)}
	o.open()
	s.to(&o, false)
	o.text("arguments_digest", arguments)
	if cause != nil {
		o.name("cause")
		o.b = append(o.b, cause...)
	}
	o.close()
	e.SealData(string(o.b))
}

// SealData fills Data as given, for an event of a run. The digest covers everything
// but the id: run, effect, version, kind, time in microseconds, data, each
// length-marked.
func (e *Event) SealData(data string) {
	e.Data = data
	e.Digest = e.Sum()
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
