package evmrail

import (
	"context"
	"errors"
	"fmt"
	"time"

	"quittance/reconcile/evm"
	"quittance/reconcile/policy"
	"quittance/reconcile/rail"
	"quittance/reconcile/refunds"
)

// Networks let what was sent back be looked for on the chains of the policy in force.
func Networks(p func() *policy.Policy, now func() time.Time) func(network string) refunds.Network {
	return func(network string) refunds.Network {
		declared := p().Rail(network)
		if declared == nil || declared.Chain == nil {
			return nil
		}
		return outgoing{declared.Chain, now}
	}
}

type outgoing struct {
	*rail.Chain
	now func() time.Time
}

// Outgoing says what a transaction moved. It is read whole: one that moved the amount to the
// recipient may have moved other things too.
func (c outgoing) Outgoing(ctx context.Context, q refunds.Question) refunds.Sight {
	asset, err := evm.ParseAddress(q.Asset)
	to, more := evm.ParseAddress(q.Recipient)
	err = errors.Join(err, more)
	tx, more := evm.ParseHash(q.Tx)
	err = errors.Join(err, more)
	amount, more := evm.ParseAtomic(q.Amount.String())
	if err = errors.Join(err, more); err != nil {
		return refunds.Sight{Said: "It cannot be looked for: " + err.Error()}
	}
	m := c.Moved(ctx, asset, tx, c.now())
	s := refunds.Sight{Final: m.Final, Block: int64(m.Block)}
	switch {
	case m.Trouble != nil:
		s.Said = "It could not be looked for: " + m.Trouble.Error()
	case !m.Mined:
		s.Said = "The transaction is in no block."
	case m.Failed:
		s.Said = fmt.Sprintf("The transaction failed in block %d and moved nothing.", m.Block)
		if m.Final {
			s.Seen = refunds.Failed
		}
	default:
		s.Seen, s.Said = refunds.Elsewhere, fmt.Sprintf("The transaction is in block %d and moved something else.", m.Block)
		for _, t := range m.Transfers {
			if t.To == to && t.Value.Cmp(amount) == 0 && !t.At.Before(q.Since.Add(-clockSkew)) {
				s.Seen, s.Said = refunds.Arrived, fmt.Sprintf("It arrived in block %d.", m.Block)
			}
		}
		if !m.Final {
			s.Said += " It waits for finality."
			if s.Seen == refunds.Arrived {
				s.Seen = refunds.NotSeen
			}
		}
	}
	return s
}

// clockSkew is how far the chain's time may be behind the clock of whoever recorded it.
const clockSkew = 10 * time.Minute
