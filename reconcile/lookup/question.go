package lookup

import (
	"time"

	"golang.org/x/text/unicode/norm"

	"quittance/ledger/money"
	"quittance/reconcile/canon"
)

// Question is all that is known of an effect when its downstream is asked about it.
type Question struct {
	Effect, Account, Run, Tool string

	BusinessKey string // "" where the tool has none
	VendorKey   string // what every attempt passed on as idempotency key
	Reference   string // the downstream's name for it, which it was closed with; "" mostly
	Arguments   *canon.Value
	Amount      *money.Amount // nil where the tool declares none, or these arguments do not give it

	// Attempts are all that may have been sent. An effect in a log gap whose attempts are
	// not on record has one whose Begun is zero and whose Deadline is the gap's.
	Attempts []Attempt
	// LandsWithin is how long a sent request may still land; nil, for ever.
	LandsWithin *time.Duration

	// KeyOnly: no call is on record, somebody only wants to see what a key finds. Records
	// are then found and never match.
	KeyOnly bool

	// AskedAt is the database's time, committed before anybody was asked: an answer is
	// never older than it.
	AskedAt time.Time

	// Shared: another effect that may have been sent and is undecided has the same business
	// key, so a hit without our own key could be that one's.
	Shared bool
	// Unreferenced: another effect with the same business key is taken, and nobody stored
	// its reference; a hit without our own key could be that one's.
	Unreferenced bool
	// Owned are the names of records that are not ours ([Hit.Name]), by the effect that each
	// proves; "" for those that a person said are none of ours. Those of effects with the same business key are
	// known before asking; those of what was found ([Seen.References]) are added before judging.
	Owned map[string]string
	// Disputed are names of records by the effect of another call that a person closed with
	// each, though no look at that effect ever showed it.
	Disputed map[string]string
	// Resent are those that a person said are none of ours, and after that an attempt began.
	Resent map[string]bool
}

// Absent says whether nothing that was found may be this effect, as far as is known before
// judging: then a source whose absence is proof asks for its canary.
func (q *Question) Absent(s *Seen) bool {
	for _, h := range s.Hits {
		if _, owned := q.Owned[h.Name()]; !owned && !h.Never {
			return false
		}
	}
	return s.Complete
}

// spelledTwoWays says whether a text of the call was sent with letters in parts, such as e and
// an accent for é. The agent sent that on; we ask for a business key in one piece. A source
// that compares bytes then shows nothing although it is there.
func spelledTwoWays(v *canon.Value) bool {
	if v == nil {
		return false
	}
	if text, ok := v.Text(); ok && !norm.NFC.IsNormalString(text) {
		return true
	}
	for _, item := range v.Items() {
		if spelledTwoWays(item) {
			return true
		}
	}
	for _, member := range v.Members() {
		if spelledTwoWays(member) {
			return true
		}
	}
	return false
}

// As is the same question about what goes by another key, whatever it is found by: the
// canary's.
func (q Question) As(key string) Question {
	q.BusinessKey, q.VendorKey, q.Reference = key, key, key
	return q
}

// Attempt is one try at performing the effect. Times are the database's.
type Attempt struct{ Begun, Deadline time.Time }

// Moment is when a request of the last attempt can no longer land. ok is false where no
// such time is known.
func (q *Question) Moment() (moment time.Time, ok bool) {
	if len(q.Attempts) == 0 || q.LandsWithin == nil {
		return time.Time{}, false
	}
	for _, a := range q.Attempts {
		if a.Deadline.IsZero() {
			return time.Time{}, false
		}
		if a.Deadline.After(moment) {
			moment = a.Deadline
		}
	}
	return moment.Add(*q.LandsWithin), true
}

// begun is when the first attempt began; ok is false where an attempt is not on record.
func (q *Question) begun() (first time.Time, ok bool) {
	for i, a := range q.Attempts {
		if a.Begun.IsZero() {
			return time.Time{}, false
		}
		if i == 0 || a.Begun.Before(first) {
			first = a.Begun
		}
	}
	return first, len(q.Attempts) > 0
}
