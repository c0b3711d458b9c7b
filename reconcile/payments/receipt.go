package payments

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"

	"quittance/ledger"
	"quittance/ledger/audit"
	"quittance/ledger/payments"
	"quittance/reconcile/access"
)

// receiptToken is the secret name of an order's receipt: 132 bits that nobody can make
// without a key of this database, and that say nothing of the order. number is raised to
// revoke it. It is stored nowhere, only its hash.
func (e *Engine) receiptToken(order string, number int) string {
	mac := hmac.New(sha256.New, e.keys.receipts)
	mac.Write([]byte("receipt 1\n" + order + "\n" + strconv.Itoa(number)))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))[:22]
}

// ReceiptHash is what the first receipt of an order is found by.
func (e *Engine) ReceiptHash(order string) []byte {
	hash := sha256.Sum256([]byte(e.receiptToken(order, 1)))
	return hash[:]
}

// ReceiptURL is where the payer of an order finds its receipt; "" while there is no order.
func (e *Engine) ReceiptURL(o *payments.Order) string {
	if o == nil {
		return ""
	}
	return strings.TrimRight(e.public, "/") + "/r/" + e.receiptToken(o.ID, o.Receipt)
}

// Receipt finds what a receipt's token names; [CodeNotFound] for every other text.
func (e *Engine) Receipt(ctx context.Context, token string) (*Payment, error) {
	hash := sha256.Sum256([]byte(token))
	o, err := payments.OrderByReceipt(ctx, e.db, hash[:])
	if err != nil {
		return nil, err
	}
	if o == nil || len(token) != 22 {
		return nil, errNotFound
	}
	row, err := payments.ByID(ctx, e.db, o.Payment)
	if err != nil {
		return nil, err
	}
	return load(ctx, e.db, row)
}

// Payment reads a payment by its name.
func (e *Engine) Payment(ctx context.Context, n payments.Name) (*Payment, error) {
	return e.find(ctx, n)
}

// PaymentOfOrder reads the payment of an order. account 0: of any, for staff.
func (e *Engine) PaymentOfOrder(ctx context.Context, account int64, order string) (*Payment, error) {
	row, err := payments.ByOrder(ctx, e.db, order)
	if err != nil {
		return nil, err
	}
	if row == nil || account != 0 && row.Account != account {
		return nil, &Refusal{Code: CodeNotFound, Detail: "There is no such order."}
	}
	return load(ctx, e.db, row)
}

// Revoke is a receipt's address that must not open it any more.
type Revoke struct {
	By    access.MadeBy
	Order string
	Note  string
}

// RevokeReceipt makes a receipt unreachable at its address, for ever, and gives it a new
// one.
func (e *Engine) RevokeReceipt(ctx context.Context, in Revoke) (url string, err error) {
	if err := noted(in.By, in.Note); err != nil {
		return "", err
	}
	row, err := payments.ByOrder(ctx, e.db, in.Order)
	if err != nil {
		return "", err
	}
	if row == nil {
		return "", &Refusal{Code: CodeNotFound, Detail: "There is no such order."}
	}
	err = e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		if _, err := payments.Lock(ctx, tx, row.ID); err != nil {
			return err
		}
		o, err := payments.OrderOf(ctx, tx, row.ID)
		if err != nil {
			return err
		}
		if o == nil {
			return notNow("It has no receipt yet.")
		}
		o.Receipt++
		hash := sha256.Sum256([]byte(e.receiptToken(o.ID, o.Receipt)))
		if err := payments.NewReceipt(ctx, tx, o.ID, o.Receipt, hash[:]); err != nil {
			return err
		}
		if err := payments.Record(ctx, tx, payments.Event{Payment: row.ID, Kind: "receipt_revoked", PersonID: in.By.Person.ID}, map[string]any{"note": in.Note, "number": o.Receipt}); err != nil {
			return err
		}
		url = e.ReceiptURL(o)
		line := in.By.Row("receipt.revoke", "order:"+o.ID)
		line.Note = in.Note
		return audit.Add(ctx, tx, line)
	})
	return url, err
}
