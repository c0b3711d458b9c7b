package ledger

import (
	"errors"

	"github.com/lib/pq"
)

// Constraint is the name of the constraint that err violated, or "" when err is
// not such an error: callers branch on names, never on messages.
func Constraint(err error) string {
	var e *pq.Error
	if errors.As(err, &e) && e.Code.Class() == "23" {
		return e.Constraint
	}
	return ""
}

// Retryable tells the two errors by which PostgreSQL asks for the transaction to
// be run again: serialization_failure and deadlock_detected.
func Retryable(err error) bool {
	var e *pq.Error
	return errors.As(err, &e) && (e.Code == "40001" || e.Code == "40P01")
}
