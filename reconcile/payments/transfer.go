package payments

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"quittance/ledger"
	"quittance/ledger/money"
	"quittance/ledger/payments"
	"quittance/ledger/system"
	"quittance/reconcile/refunds"
)

// Posted is a movement as a gateway or the rail itself tells of it.
type Posted struct {
	Seen
	Reverted bool // it was reorganised away
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

// Post records a movement that a gateway tells of.
func (e *Engine) Post(ctx context.Context, in Incoming) (*Moved, error) {
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
	if err := f.refuse(); err != nil {
		return nil, err
	}
	return e.post(ctx, p)
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
			m, err = e.again(ctx, tx, pay, p)
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

// whose finds the payment that a movement is for; nil where none is known. Whatever names
// one must name the same.
func (e *Engine) whose(ctx context.Context, tx *ledger.Tx, p Posted, known *payments.Transfer) (*payments.Row, error) {
	if known != nil && known.Account != p.Account {
		return nil, &Refusal{Code: CodeConflict, Reason: ReasonPayer, Detail: "The transfer is on record for somebody else."}
	}
	var found *payments.Row
	join := func(pointer string, row *payments.Row, err error, must bool) error {
		switch {
		case err != nil:
			return err
		case row == nil || row.Account != p.Account:
			if must {
				return invalid(pointer, "names no payment of yours")
			}
		case found != nil && found.ID != row.ID:
			return &Refusal{Code: CodeConflict, Reason: ReasonRequest, Detail: "The transfer is for another payment."}
		default:
			found = row
		}
		return nil
	}
	ofOrder := func(o *payments.Order, err error) (*payments.Row, error) {
		if o == nil || err != nil {
			return nil, err
		}
		return payments.ByID(ctx, tx, o.Payment)
	}
	if known != nil && known.OrderID != "" {
		row, err := ofOrder(payments.OrderByID(ctx, tx, known.OrderID))
		if err := join("", row, err, false); err != nil {
			return nil, err
		}
	}
	if p.Nonce != "" {
		row, err := payments.ByNonce(ctx, tx, p.Network, p.Asset, p.Sender, p.Nonce)
		if err := join("/nonce", row, err, false); err != nil {
			return nil, err
		}
	}
	if p.Memo != "" {
		row, err := ofOrder(payments.OrderByMemo(ctx, tx, p.Network, p.Recipient, p.Memo))
		if err := join("/memo", row, err, false); err != nil {
			return nil, err
		}
	}
	if p.PaymentID != "" {
		row, err := payments.ByName(ctx, tx, payments.Name{Account: p.Account, Gateway: p.Gateway, PaymentID: p.PaymentID})
		if err := join("/payment_id", row, err, true); err != nil {
			return nil, err
		}
	}
	if p.Order != "" {
		row, err := ofOrder(payments.OrderByID(ctx, tx, p.Order))
		if err := join("/order_id", row, err, true); err != nil {
			return nil, err
		}
	}
	return found, nil
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
	}
	return &Moved{New: true, Transfer: t, Refund: f}, nil
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

// reclass gives a transfer another class, and what goes with it.
func (e *Engine) reclass(ctx context.Context, tx *ledger.Tx, pay *Payment, t payments.Transfer, class, why string) error {
	before := t
	t.Class, t.Over = class, money.Atomic{}
	if err := payments.Classify(ctx, tx, t); err != nil {
		return err
	}
	_, err := e.moved(ctx, tx, pay, &before, &t, "transfer_"+why, 0, "")
	return err
}

// moved posts what a transfer's change means, opens or changes what is owed for it, and
// records it. before nil: it is new. by and note are of the person who decided it; 0 where
// none did.
func (e *Engine) moved(ctx context.Context, tx *ledger.Tx, pay *Payment, before, t *payments.Transfer, kind string, by int64, note string) (*payments.Refund, error) {
	f, err := owe(ctx, tx, pay, t, by)
	if err != nil {
		return nil, err
	}
	sides := difference(before, t)
	if f != nil {
		for i := range sides {
			if sides[i].Account == "refund_owed" {
				sides[i].Refund = f.ID
			}
		}
	}
	if err := payments.Post(ctx, tx, &t.Moved, sides...); err != nil {
		return nil, err
	}
	event := payments.Event{Transfer: t.ID, Kind: kind, PersonID: by, Alert: t.Class == Unmatched && before == nil}
	if pay != nil {
		event.Payment = pay.ID
	}
	said := map[string]any{
		"class": t.Class, "over": t.Over.String(), "amount": t.Amount.String(), "final": t.Final, "reverted": t.Reverted(), "block": t.Block,
	}
	if note != "" {
		said["note"] = note
	}
	return f, payments.Record(ctx, tx, event, said)
}

// owe makes what is owed for a transfer what its class says. by is the person who decided
// about the class; 0 where none did.
func owe(ctx context.Context, tx *ledger.Tx, pay *Payment, t *payments.Transfer, by int64) (*payments.Refund, error) {
	f, err := payments.RefundOf(ctx, tx, t.ID)
	if err != nil {
		return nil, err
	}
	want := owed(t)
	now, err := tx.Now(ctx)
	if err != nil {
		return nil, err
	}
	reason := t.Class
	if t.Class == Applied {
		reason = "over"
	}
	switch {
	case f == nil && want.Sign() == 0:
		return nil, nil
	case f == nil:
		f = &payments.Refund{
			ID: uuid.Must(uuid.NewV7()).String(), Transfer: t.ID, Account: t.Account, Network: t.Network, Asset: t.Asset, Payer: t.Sender,
			Amount: want, State: refunds.Owed, Reason: reason, OpenedBy: by, OpenedAt: now, Version: 1,
		}
		if pay != nil {
			f.Gateway = pay.Gateway
		}
		return f, payments.AddRefund(ctx, tx, *f)
	case f.Amount.Cmp(want) == 0:
		return f, nil
	}
	after, why := refunds.Next(*f, refunds.Change, want)
	if why != "" {
		return nil, fmt.Errorf("couldn't change what is owed for transfer %s: %s", t.ID, why)
	}
	if want.Sign() != 0 {
		after.Reason = reason
	}
	if err := payments.ChangeRefund(ctx, tx, &after); err != nil {
		return nil, err
	}
	return &after, payments.RecordRefund(ctx, tx, f.ID, "refund_changed", by, map[string]any{"was": f.Amount.String()})
}
