package payments

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"

	"quittance/ledger/payments"
)

// receiptToken is the secret name of an order's receipt: 132 bits that nobody can make
// without a key of this database, and that say nothing of the order. number is raised to
// revoke it. It is stored nowhere, only its hash.
func (e *Engine) receiptToken(order string, number int) string {
	mac := hmac.New(sha256.New, e.keys.receipts)
	mac.Write([]byte("receipt 1\n" + order + "\n" + strconv.Itoa(number)))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))[:22]
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
