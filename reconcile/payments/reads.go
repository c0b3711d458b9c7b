package payments

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"quittance/ledger"
	"quittance/ledger/payments"
)

// ReadWindow is how long the answer of a paid read serves the same payer again.
const ReadWindow = 120 * time.Second

// Reading is what became of a question about a read.
type Reading struct {
	Charged  bool
	ID       string // of the read that is charged
	Payment  *Payment
	Response *Response
}

// Read asks whether the same payer paid for the same read moments ago. Only of a tool that
// the policy marks cacheable, and only where the money moves after the work: elsewhere it
// has moved already.
func (e *Engine) Read(ctx context.Context, in Asked) (*Reading, error) {
	var f faults
	var c payments.Claimed
	c.Gateway, c.Payer = f.text("/gateway", in.Gateway, 128), f.text("/payer", in.Payer, 256)
	request := e.request(&f, &c, in)
	if err := f.refuse(); err != nil {
		return nil, err
	}
	want := payments.Read{Account: in.Account, Gateway: c.Gateway, Payer: lowerHex(c.Payer), Fingerprint: fingerprint("quittance read 1", c.Gateway, request)}
	if e.policy().Tool(c.Tool).Cacheable && !e.policy().Gateway(c.Gateway).MoneyFirst {
		first, err := payments.LatestRead(ctx, e.db, want, ReadWindow)
		if err != nil {
			return nil, err
		}
		if first != nil {
			return e.readAgain(ctx, first)
		}
	}
	want.ID = uuid.Must(uuid.NewV7()).String()
	err := e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error { return payments.AddRead(ctx, tx, want) })
	return &Reading{Charged: true, ID: want.ID}, err
}

func (e *Engine) readAgain(ctx context.Context, first *payments.Read) (*Reading, error) {
	r := &Reading{ID: first.ID, Response: &Response{Status: first.Status, Body: first.Body}}
	if err := json.Unmarshal([]byte(first.Headers), &r.Response.Headers); err != nil {
		return nil, err
	}
	if first.Payment == 0 {
		return r, nil
	}
	row, err := payments.ByID(ctx, e.db, first.Payment)
	if err != nil {
		return nil, err
	}
	r.Payment, err = load(ctx, e.db, row)
	return r, err
}

// FinishRead is what a read came back with.
type FinishRead struct {
	Account   int64
	ID        string
	Outcome   string // "taken" or "failed"
	PaymentID string
	Response  *Response
}

// FinishRead stores a read's answer. One that failed, and one whose answer is too long to
// keep, is not used again.
func (e *Engine) FinishRead(ctx context.Context, in FinishRead) error {
	if !isUUID(in.ID) {
		return &Refusal{Code: CodeNotFound, Detail: "There is no such read."}
	}
	var f faults
	in.Response.check(&f)
	if err := f.refuse(); err != nil {
		return err
	}
	a, err := frozen(in.Response)
	if err != nil {
		return err
	}
	x := payments.Read{Account: in.Account, ID: in.ID, Outcome: in.Outcome}
	if in.Outcome == "taken" && a.Digest != nil && a.Size <= ResponseLimit {
		x.Status, x.Headers, x.Body = a.Status, a.Headers, a.Body
	}
	known, err := payments.ReadByID(ctx, e.db, in.Account, in.ID)
	if err != nil {
		return err
	}
	if known == nil {
		return &Refusal{Code: CodeNotFound, Detail: "There is no such read."}
	}
	if in.PaymentID != "" {
		p, err := payments.ByName(ctx, e.db, payments.Name{Account: in.Account, Gateway: known.Gateway, PaymentID: in.PaymentID})
		if err != nil {
			return err
		}
		if p == nil || lowerHex(p.Payer) != known.Payer {
			return invalid("/payment_id", "names no payment of the payer at this gateway")
		}
		x.Payment = p.ID
	}
	return e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		_, err := payments.FinishRead(ctx, tx, x)
		return err
	})
}
