package payments

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"quittance/ledger"
	"quittance/ledger/payments"
	"quittance/ledger/system"
)

// Posted is a movement as a gateway or the rail itself tells of it.
type Posted struct {
	Seen
	Reverted bool // it was reorganised away
	// Hearsay: a gateway tells it of a rail that can be asked, which alone says what is final,
	// what is taken back, and what is there again.
	Hearsay bool
	// The order it is known to be for, if it is: the order's id, or a payment of a gateway.
	Order              string
	Gateway, PaymentID string
}

// Moved is how a movement is classified.
type Moved struct {
	New      bool
	Transfer payments.Transfer
	Refund   *payments.Refund
}

// Incoming is a movement as a gateway writes it.
type Incoming struct {
	Account                     int64
	Network, Tx                 string
	Position                    int
	Asset, From, To, Amount     string
	Nonce, Memo                 string
	Gateway, PaymentID, OrderID string
	Block                       int64
	BlockHash                   string
	Final, Reverted             bool
}

// Post records a movement that a gateway tells of. Where its rail can be asked, only the rail
// makes it final or takes it back: what a gateway says of that makes it be asked.
func (e *Engine) Post(ctx context.Context, in Incoming) (*Moved, error) {
	p, err := readIncoming(in)
	if err != nil {
		return nil, err
	}
	if e.rails(p.Network) != nil {
		p.Final, p.Hearsay = false, true
	}
	return e.post(ctx, p)
}

func readIncoming(in Incoming) (Posted, error) {
	var f faults
	p := Posted{Reverted: in.Reverted, Order: in.OrderID, Gateway: in.Gateway, PaymentID: in.PaymentID}
	p.Seen = Seen{Block: in.Block, BlockHash: same(in.Network, in.BlockHash), Final: in.Final}
	m := &p.Moved
	m.Account, m.KnownBy, m.Position = in.Account, "gateway", in.Position
	m.Network = f.text("/network", in.Network, 128)
	m.Tx = same(in.Network, f.text("/tx", in.Tx, 256))
	if evm(in.Network) && in.Tx != "" && !hash32.MatchString(m.Tx) {
		f.add("/tx", "must be a transaction's hash: 0x and 64 hex digits")
	}
	m.Asset = f.name("/asset", in.Network, in.Asset)
	m.Sender = f.name("/from", in.Network, in.From)
	m.Recipient = f.name("/to", in.Network, in.To)
	m.Amount = f.amount("/amount", in.Amount)
	m.Nonce, m.Memo = same(in.Network, in.Nonce), same(in.Network, in.Memo)
	switch {
	case in.Position < 0 || in.Position > 1<<30:
		f.add("/position", "must be 0 or more")
	case len(in.Nonce) > 128 || len(in.Memo) > 128:
		f.add("/nonce", "a nonce or a memo has at most 128 bytes")
	case len(in.BlockHash) > 256:
		f.add("/block_hash", "has more than 256 bytes")
	case in.Block < 0:
		f.add("/block", "must not be negative")
	case (in.Gateway == "") != (in.PaymentID == ""):
		f.add("/payment_id", "goes together with gateway")
	case in.Final && in.Reverted:
		f.add("/reverted", "what is final is not reorganised away")
	}
	if in.OrderID != "" && !isUUID(in.OrderID) {
		f.add("/order_id", "is no order's id")
	}
	return p, f.refuse()
}

// post records a movement, once: in the transaction that holds its payment.
func (e *Engine) post(ctx context.Context, p Posted) (*Moved, error) {
	for range tries {
		m, err := e.posted(ctx, p)
		if !errors.Is(err, errAgain) {
			return m, err
		}
	}
	return nil, errAgain
}

func (e *Engine) posted(ctx context.Context, p Posted) (m *Moved, err error) {
	var refusal error
	err = e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		m, refusal = nil, nil
		sys, err := system.Read(ctx, tx)
		if err != nil {
			return err
		}
		if sys.Behind() {
			refusal = errBehind
			return nil
		}
		known, err := payments.TransferAt(ctx, tx, p.Network, p.Tx, p.Position)
		if err != nil {
			return err
		}
		if known == nil {
			if known, err = payments.ToldAt(ctx, tx, &p.Moved); err != nil {
				return err
			}
		}
		payment, err := e.whose(ctx, tx, p, known)
		if err != nil {
			return keep(&refusal, err)
		}
		var pay *Payment
		if payment != nil {
			row, err := payments.Lock(ctx, tx, payment.ID)
			if err != nil {
				return err
			}
			if pay, err = load(ctx, tx, row); err != nil {
				return err
			}
		}
		if known == nil {
			m, err = e.arrive(ctx, tx, pay, p, sys)
		} else {
			m, err = e.again(ctx, tx, pay, p, known.ID)
		}
		return keep(&refusal, err)
	})
	if err != nil {
		return nil, err
	}
	return m, refusal
}

// keep turns a refusal into an answer, whose transaction ends well: errors roll back.
func keep(refusal *error, err error) error {
	if r, ok := errors.AsType[*Refusal](err); ok {
		*refusal = r
		return nil
	}
	return err
}

// arrive records a movement that was not known.
func (e *Engine) arrive(ctx context.Context, tx *ledger.Tx, pay *Payment, p Posted, sys system.Moment) (*Moved, error) {
	t := payments.Transfer{Moved: p.Moved, Class: Unmatched, Block: p.Block, BlockHash: p.BlockHash, Final: p.Final}
	t.ID, t.SeenAt = uuid.Must(uuid.NewV7()).String(), sys.Now
	if p.Reverted {
		return nil, invalid("/reverted", "the transfer is not on record")
	}
	c := classes{class: Unmatched}
	if pay != nil {
		if err := e.ordered(ctx, tx, pay); err != nil {
			return nil, err
		}
		if !fits(pay.Order, &p.Moved) {
			pay = nil // by its name it is for the order, and it is another asset or recipient: a person looks
		} else {
			c = classify(pay.Order, pay.Transfers, t.Amount)
			t.OrderID = pay.OrderID
		}
	}
	t.Class, t.Over = c.class, c.over
	added, err := payments.AddTransfer(ctx, tx, t)
	if err != nil {
		return nil, err
	}
	if !added {
		return nil, errAgain
	}
	f, err := e.moved(ctx, tx, pay, nil, &t, "transfer_"+t.Class, 0, "")
	if err != nil {
		return nil, err
	}
	if pay != nil {
		if err := e.paid(ctx, tx, pay, c); err != nil {
			return nil, err
		}
		if err := e.contradicts(ctx, tx, pay, &t); err != nil {
			return nil, err
		}
	}
	return &Moved{New: true, Transfer: t, Refund: f}, nil
}

// contradicts alerts where money came for a payment of which people had found that nothing
// was taken. It is owed back like all that comes late.
func (e *Engine) contradicts(ctx context.Context, tx *ledger.Tx, pay *Payment, t *payments.Transfer) error {
	if pay.State != string(Refused) && pay.PrunedFrom != string(Refused) {
		return nil
	}
	decided, err := payments.DecidedNotTaken(ctx, tx, pay.ID)
	if err != nil || !decided {
		return err
	}
	return payments.Record(ctx, tx, payments.Event{Payment: pay.ID, Kind: "contradicted", Alert: true}, map[string]any{"transfer": t.ID, "tx": t.Tx})
}

// ordered creates the order of a payment for which money arrived before it had one.
func (e *Engine) ordered(ctx context.Context, tx *ledger.Tx, pay *Payment) error {
	if pay.Order != nil {
		return nil
	}
	state := "created"
	if pay.State == string(Refused) || pay.PrunedFrom == string(Refused) {
		state = "failed"
	}
	return e.open(ctx, tx, pay, state, "", "", 0)
}

// paid moves the order to where a movement brings it, with what was held for it.
func (e *Engine) paid(ctx context.Context, tx *ledger.Tx, pay *Payment, c classes) error {
	for i := range pay.Transfers {
		t := pay.Transfers[i]
		for _, id := range c.topUp {
			if t.ID != id {
				continue
			}
			if err := e.reclass(ctx, tx, pay, t, Applied, "topped_up"); err != nil {
				return err
			}
		}
	}
	if c.order == pay.Order.State {
		return nil
	}
	if err := payments.MoveOrder(ctx, tx, pay.OrderID, pay.Order.State, c.order); err != nil {
		return err
	}
	pay.Order.State = c.order
	return payments.Record(ctx, tx, payments.Event{Payment: pay.ID, Kind: "order_" + c.order}, map[string]any{"order_id": pay.OrderID})
}
