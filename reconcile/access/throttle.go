package access

import (
	"context"
	"crypto/sha256"
	"time"

	"quittance/ledger"
	store "quittance/ledger/access"
	"quittance/ledger/audit"
)

// A person mistypes; a program guesses. The first few failures of a name cost
// nothing, then each doubles the wait. An address gets more, because a whole office
// may share one.
const (
	freeByName    = 5
	freeByAddress = 50
	longestWait   = 15 * time.Minute
)

func throttleKey(kind, value string) []byte {
	h := sha256.Sum256([]byte(kind + "\x00" + value))
	return h[:]
}

// throttled answers *[Throttled] while one of the keys has to wait. keys[0] is a name
// when there are two.
func (s *Service) throttled(ctx context.Context, keys [][]byte) error {
	for i, key := range keys {
		free := freeByAddress
		if len(keys) == 2 && i == 0 {
			free = freeByName
		}
		n, ago, err := store.Misses(ctx, s.db, key)
		if err != nil {
			return err
		}
		if wait := waitAfter(n - free); wait > ago {
			return &Throttled{RetryAfter: wait - ago}
		}
	}
	return nil
}

// waitAfter is how long to wait after n failures too many.
func waitAfter(n int) time.Duration {
	if n <= 0 {
		return 0
	}
	return min(longestWait, time.Second<<min(n, 20))
}

// missed counts a failed sign-in and audits it.
func (s *Service) missed(ctx context.Context, keys [][]byte, person int64, name string) error {
	return s.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		for _, key := range keys {
			if err := store.Miss(ctx, tx, key); err != nil {
				return err
			}
		}
		// Who it was claimed to be: nobody has signed in.
		subject := ""
		if person != 0 {
			subject = subjectOf(person)
		}
		return audit.Add(ctx, tx, audit.Row{Via: "page", Action: "sign_in", Outcome: "denied", Subject: subject, Note: "wrong name, password or token"})
	})
}
