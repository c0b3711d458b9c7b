package refunds

import (
	"context"
	"regexp"
	"strings"
	"time"

	"quittance/ledger/money"
)

// Network asks one network about a payout. It decides nothing: what it saw is judged here.
type Network interface {
	// Outgoing says what a transaction moved, as far as it is what the question names.
	Outgoing(ctx context.Context, q Question) Sight
}

// Question names a payout by what is known of it.
type Question struct {
	Asset, Recipient, Tx string
	Amount               money.Atomic
	Since                time.Time // it cannot have been sent before
}

// Seen is what a network shows of a payout.
type Seen string

const (
	// NotSeen proves nothing: not found, not final, or the network could not be asked. The
	// zero value.
	NotSeen Seen = ""
	// Arrived: in a final block the amount went to the recipient.
	Arrived Seen = "arrived"
	// Elsewhere: the transaction is there and moved something else: to another recipient,
	// another amount, or nothing. Final tells whether that can still change.
	Elsewhere Seen = "elsewhere"
	// Failed: in a final block the transaction failed and moved nothing.
	Failed Seen = "failed"
)

// Sight is what was seen. Of what is not final nothing follows.
type Sight struct {
	Seen  Seen
	Final bool
	Block int64
	Said  string // in words, for people
}

// looks is when a payout is looked for after it was recorded; later looks follow each
// other by lookLater. A payment that a person gave up is looked for for a month: if it
// lands after all, it may have left twice.
var looks = []time.Duration{0, 15 * time.Second, 45 * time.Second, 2 * time.Minute, 5 * time.Minute}

const (
	lookLater   = 10 * time.Minute
	lookGivenUp = time.Hour
	giveUpAfter = 30 * 24 * time.Hour
	// patience bounds a question to a network; whoever asks longer counts as dead.
	patience = 20 * time.Second
)

func wait(step int) time.Duration {
	if step >= len(looks) {
		return lookLater
	}
	if step == 0 {
		return looks[0]
	}
	return looks[step] - looks[step-1]
}

var hash32 = regexp.MustCompile(`^0x[0-9a-f]{64}$`)

// evm tells a network of which names and hashes are the same in either case.
func evm(network string) bool { return strings.HasPrefix(network, "eip155:") }

// same is a name of a network in the form it is compared in.
func same(network, text string) string {
	if evm(network) {
		return strings.ToLower(text)
	}
	return text
}
