package payments

import (
	"context"
	"time"

	"quittance/ledger/money"
	"quittance/ledger/payments"
)

// Rail speaks to one network. It decides nothing: what it saw is judged here.
type Rail interface {
	// Signer is who made an authorization's signature, without asking anybody. false: the
	// rail does not know the asset's signatures.
	Signer(c payments.Claimed, o Offered) (payer string, known bool, err error)
	// Authorization asks what became of an authorization.
	Authorization(ctx context.Context, q Question) Sight
	// Incoming reads what moved to the recipients, of an asset, in final blocks from one on
	// (-1: from about now), as far as one question goes.
	Incoming(ctx context.Context, asset string, recipients []string, from int64) (Page, error)
	// Within reads what a transaction moved of an asset to a recipient; nothing where it is in
	// no block, or failed.
	Within(ctx context.Context, asset, recipient, tx string) ([]Seen, error)
	// Still asks where a transfer stands now.
	Still(ctx context.Context, t payments.Transfer) (Standing, error)
}

// Page is a stretch of final blocks, read whole.
type Page struct {
	List []Seen
	Next int64 // the block to go on from
	Done bool  // the last final block was read
}

// Standing is where a known transfer stands. The zero value could not be told.
type Standing struct {
	There *Seen // perhaps in another block than before
	Gone  bool  // in no block of the chain
}

// Question names an authorization and what it was signed for.
type Question struct {
	Asset, Payer, Nonce, PayTo string
	ValidBefore                int64
	Amount                     money.Atomic
	Since                      time.Time // it cannot have been used before
}

// Sight is what a rail says of an authorization.
type Sight struct {
	// Dead is "expired" or "cancelled" where a final block proves that it can never move
	// money: DeadBlock.
	Dead      string
	DeadBlock int64
	// Landed is its transfer, where it was used and the recipient and the amount are right.
	Landed *Seen
	// Said is it in words, for people.
	Said string
}

// Seen is a movement on a rail.
type Seen struct {
	payments.Moved
	Block     int64
	BlockHash string
	Final     bool
}

// signed checks who signed an authorization, where that can be told. False: it stands on the
// gateway's word.
func (e *Engine) signed(c payments.Claimed, o Offered) (bool, error) {
	if o.Signature == "" {
		return false, nil
	}
	rail := e.rails(c.Network)
	if rail == nil {
		return false, nil
	}
	who, known, err := rail.Signer(c, o)
	switch {
	case !known:
		return false, nil
	case err != nil:
		return false, invalid("/authorization/signature", err.Error())
	case same(c.Network, who) != c.Payer:
		return false, invalid("/authorization/signature", "was not made by the payer for this amount, recipient and time")
	}
	return true, nil
}
