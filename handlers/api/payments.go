package api

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"quittance/client"
	rows "quittance/ledger/payments"
	"quittance/reconcile/effects"
	"quittance/reconcile/payments"
	"quittance/web"
)

// Payments is what the handlers ask of [payments.Engine].
type Payments interface {
	Claim(ctx context.Context, in payments.Asked) (*payments.Answer, error)
	Order(ctx context.Context, in payments.NewOrder) (*payments.Payment, error)
	Work(ctx context.Context, in payments.NewWork) (*effects.BeginAnswer, error)
	Broadcast(ctx context.Context, in payments.Sending) (*payments.Payment, error)
	Finish(ctx context.Context, in payments.Finish) (*payments.Payment, error)
	Cancel(ctx context.Context, n rows.Name) (*payments.Payment, error)
	Post(ctx context.Context, in payments.Incoming) (*payments.Moved, error)
	Read(ctx context.Context, in payments.Asked) (*payments.Reading, error)
	FinishRead(ctx context.Context, in payments.FinishRead) error

	Payment(ctx context.Context, n rows.Name) (*payments.Payment, error)
	PaymentOfOrder(ctx context.Context, account int64, order string) (*payments.Payment, error)
	ReceiptURL(o *rows.Order) string
}

// paymentLimit leaves room for a frozen answer above the stored limit, of which digest and
// size are kept.
const paymentLimit = 8 << 20

func (a *API) claimPayment(c echo.Context, who identity) error {
	in, err := web.Decode[client.PaymentRequest](c)
	if err != nil {
		return err
	}
	asked := payments.Asked{
		Account: who.account(), Gateway: in.Gateway, PaymentID: in.PaymentID, Payer: in.Payer, RequestDigest: in.RequestDigest,
		Amount: in.Amount, Asset: in.Asset, Network: in.Network, PayTo: in.PayTo, Quote: in.Quote, AttemptID: in.AttemptID,
	}
	paidFor(&asked, in.Request)
	if x := in.Authorization; x != nil {
		asked.Authorization = &payments.Offered{Nonce: x.Nonce, ValidAfter: x.ValidAfter, ValidBefore: x.ValidBefore, Signature: x.Signature}
	}
	answer, err := a.payments.Claim(c.Request().Context(), asked)
	if err != nil {
		return a.paymentRefused(err)
	}
	status := http.StatusOK
	if answer.Do == payments.Proceed {
		status = http.StatusCreated
	}
	out, err := a.paymentAnswerWire(answer)
	if err != nil {
		return err
	}
	return web.JSON(c, status, out)
}

func paidFor(asked *payments.Asked, r *client.PaidRequest) {
	if r != nil {
		asked.HasRequest, asked.Method, asked.Tool, asked.Arguments = true, r.Method, r.Tool, r.Arguments
	}
}

// step names the payment of a path, and the fence that its caller holds.
func step(c echo.Context, who identity, in client.PaymentStep) (payments.Step, error) {
	id, err := web.Param(c, "payment_id")
	if err != nil {
		return payments.Step{}, err
	}
	return payments.Step{Name: rows.Name{Account: who.account(), Gateway: in.Gateway, PaymentID: id}, Fence: in.Fence}, nil
}

func (a *API) orderPayment(c echo.Context, who identity) error {
	in, err := web.Decode[client.PaymentOrder](c)
	if err != nil {
		return err
	}
	s, err := step(c, who, in.PaymentStep)
	if err != nil {
		return err
	}
	p, err := a.payments.Order(c.Request().Context(), payments.NewOrder{
		Step: s, Memo: in.Memo, Description: in.Description, ExpiresIn: time.Duration(min(in.ExpiresIn, 1<<31)) * time.Second,
	})
	if err != nil {
		return a.paymentRefused(err)
	}
	return web.JSON(c, http.StatusCreated, a.orderWire(p))
}

func (a *API) workPayment(c echo.Context, who identity) error {
	in, err := web.Decode[client.PaymentWork](c)
	if err != nil {
		return err
	}
	s, err := step(c, who, in.PaymentStep)
	if err != nil {
		return err
	}
	begun, err := a.payments.Work(c.Request().Context(), payments.NewWork{Step: s, Tool: in.Tool, Arguments: in.Arguments})
	if err != nil {
		return a.paymentRefused(err)
	}
	return web.JSON(c, beginStatus(begun), beginWire(begun))
}

func (a *API) broadcastPayment(c echo.Context, who identity) error {
	in, err := web.Decode[client.PaymentBroadcast](c)
	if err != nil {
		return err
	}
	s, err := step(c, who, in.PaymentStep)
	if err != nil {
		return err
	}
	p, err := a.payments.Broadcast(c.Request().Context(), payments.Sending{Step: s, Nonce: in.Nonce, Hash: in.Hash})
	if err != nil {
		return a.paymentRefused(err)
	}
	return web.JSON(c, http.StatusOK, a.paymentWire(p))
}

func (a *API) finishPayment(c echo.Context, who identity) error {
	in, err := web.DecodeUpTo[client.PaymentFinish](c, paymentLimit)
	if err != nil {
		return err
	}
	s, err := step(c, who, in.PaymentStep)
	if err != nil {
		return err
	}
	p, err := a.payments.Finish(c.Request().Context(), payments.Finish{Step: s, Outcome: in.Outcome, Tx: in.Tx, Why: in.Why, Response: responseOf(in.Response)})
	if err != nil {
		return a.paymentRefused(err)
	}
	return web.JSON(c, http.StatusOK, a.paymentWire(p))
}

func (a *API) cancelPayment(c echo.Context, who identity) error {
	in, err := web.Decode[client.PaymentCancel](c)
	if err != nil {
		return err
	}
	s, err := step(c, who, client.PaymentStep{Gateway: in.Gateway})
	if err != nil {
		return err
	}
	p, err := a.payments.Cancel(c.Request().Context(), s.Name)
	if err != nil {
		return a.paymentRefused(err)
	}
	return web.JSON(c, http.StatusOK, a.orderWire(p))
}

func (a *API) getPayment(c echo.Context, who identity) error {
	given, err := query(c, "gateway")
	if err != nil {
		return err
	}
	s, err := step(c, who, client.PaymentStep{Gateway: given["gateway"]})
	if err != nil {
		return err
	}
	if s.Gateway == "" {
		return web.Invalid(web.FieldError{Pointer: "?gateway", Detail: "is required: payment ids are unique within a gateway"})
	}
	p, err := a.payments.Payment(c.Request().Context(), s.Name)
	if err != nil {
		return a.paymentRefused(err)
	}
	return web.JSON(c, http.StatusOK, a.paymentWire(p))
}

func (a *API) getOrder(c echo.Context, who identity) error {
	id, err := web.Param(c, "order_id")
	if err != nil {
		return err
	}
	p, err := a.payments.PaymentOfOrder(c.Request().Context(), who.account(), id)
	if err != nil {
		return a.paymentRefused(err)
	}
	return web.JSON(c, http.StatusOK, a.orderWire(p))
}

func (a *API) postTransfer(c echo.Context, who identity) error {
	in, err := web.Decode[client.Transfer](c)
	if err != nil {
		return err
	}
	moved, err := a.payments.Post(c.Request().Context(), payments.Incoming{
		Account: who.account(), Network: in.Network, Tx: in.Tx, Position: in.Position, Asset: in.Asset, From: in.From, To: in.To,
		Amount: in.Amount, Nonce: in.Nonce, Memo: in.Memo, Gateway: in.Gateway, PaymentID: in.PaymentID, OrderID: in.OrderID,
		Block: in.Block, BlockHash: in.BlockHash, Final: in.Final, Reverted: in.Reverted,
	})
	if err != nil {
		return a.paymentRefused(err)
	}
	status := http.StatusOK
	if moved.New {
		status = http.StatusCreated
	}
	return web.JSON(c, status, movedWire(moved))
}

func (a *API) askRead(c echo.Context, who identity) error {
	in, err := web.Decode[client.ReadRequest](c)
	if err != nil {
		return err
	}
	asked := payments.Asked{Account: who.account(), Gateway: in.Gateway, Payer: in.Payer, RequestDigest: in.RequestDigest}
	paidFor(&asked, in.Request)
	r, err := a.payments.Read(c.Request().Context(), asked)
	if err != nil {
		return a.paymentRefused(err)
	}
	out := client.ReadAnswer{Charged: r.Charged, ReadID: r.ID}
	status := http.StatusCreated
	if !r.Charged {
		status = http.StatusOK
		out.Response = &client.Response{Status: r.Response.Status, Headers: r.Response.Headers, Body: r.Response.Body}
		if r.Payment != nil {
			out.Receipt = a.payments.ReceiptURL(r.Payment.Order)
		}
	}
	return web.JSON(c, status, out)
}

func (a *API) finishRead(c echo.Context, who identity) error {
	id, err := web.Param(c, "read_id")
	if err != nil {
		return err
	}
	in, err := web.DecodeUpTo[client.FinishRead](c, paymentLimit)
	if err != nil {
		return err
	}
	err = a.payments.FinishRead(c.Request().Context(), payments.FinishRead{
		Account: who.account(), ID: id, Outcome: in.Outcome, PaymentID: in.PaymentID, Response: responseOf(in.Response),
	})
	if err != nil {
		return a.paymentRefused(err)
	}
	return c.NoContent(http.StatusNoContent)
}
