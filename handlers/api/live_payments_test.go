package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"quittance/client"
)

func purchase(id string) client.PaymentRequest {
	return client.PaymentRequest{
		PaymentID: id, Gateway: "shop", Payer: "0xA000000000000000000000000000000000000001", Network: "eip155:31337",
		Asset: "0x1000000000000000000000000000000000000001", PayTo: "0x2000000000000000000000000000000000000002", Amount: "4200000",
		Request:       &client.PaidRequest{Method: "POST", Tool: "write_page", Arguments: json.RawMessage(`{"page":"a"}`)},
		Authorization: &client.Authorization{Nonce: "0x" + strings.Repeat("0", 63) + id[len(id)-1:], ValidBefore: "4102444800"},
	}
}

const payment1 = "payment-0000000001"

func TestAPaymentOverHTTP(t *testing.T) {
	t.Parallel()
	l := start(t)
	ctx := t.Context()
	in := purchase(payment1)
	claimed, err := l.agent.ClaimPayment(ctx, in)
	must(t, err)
	if claimed.Do != client.DoProceed || claimed.Replayed || claimed.Fence == 0 || claimed.Work != client.WorkNone {
		t.Fatalf("%+v", claimed)
	}
	at := client.PaymentStep{Gateway: "shop", Fence: claimed.Fence}
	order, err := l.agent.OrderPayment(ctx, payment1, client.PaymentOrder{PaymentStep: at, Description: "A page"})
	must(t, err)
	if order.OrderID != claimed.OrderID || order.State != "created" || !strings.Contains(order.Receipt, "/r/") || order.ExpiresAt == nil {
		t.Errorf("%+v", order)
	}
	begun, err := l.agent.WorkPayment(ctx, payment1, client.PaymentWork{PaymentStep: at})
	must(t, err)
	_, err = l.agent.Finish(ctx, begun.EffectID, client.FinishRequest{Fence: begun.Fence, Outcome: client.OutcomeTaken, Result: json.RawMessage(`{"page":"done"}`)})
	must(t, err)
	sent, err := l.agent.BroadcastPayment(ctx, payment1, client.PaymentBroadcast{PaymentStep: at})
	must(t, err)
	if sent.Work != client.WorkTaken || !sent.Broadcast || sent.Final {
		t.Errorf("%+v", sent)
	}
	moved := client.Transfer{Network: in.Network, Tx: "0x" + strings.Repeat("ab", 32), Asset: in.Asset, From: in.Payer, To: in.PayTo, Amount: in.Amount, Nonce: in.Authorization.Nonce, Final: true}
	for _, fresh := range []bool{true, false} {
		got, err := l.agent.PostTransfer(ctx, moved)
		must(t, err)
		if got.Class != "applied" || got.New != fresh || got.OrderID != order.OrderID || got.Refund != nil {
			t.Errorf("%+v", got)
		}
	}
	body := []byte("\x00 the page \xff")
	end, err := l.agent.FinishPayment(ctx, payment1, client.PaymentFinish{
		PaymentStep: at, Outcome: client.OutcomeSettled, Tx: moved.Tx, Response: &client.Response{Status: 201, Headers: map[string]string{"X-Page": "a"}, Body: body},
	})
	must(t, err)
	if end.State != "settled" || !end.Final || end.Order.State != "paid" || end.Order.Received != in.Amount {
		t.Errorf("%+v", end)
	}
	again, err := l.agent.ClaimPayment(ctx, in)
	must(t, err)
	if again.Do != client.DoReplay || !again.Replayed || again.Outcome != "settled" || again.Response == nil || again.Response.Status != 201 ||
		string(again.Response.Body) != string(body) || again.Response.Headers["X-Page"] != "a" || again.Receipt != order.Receipt {
		t.Errorf("%+v", again)
	}
	read, err := l.agent.Order(ctx, order.OrderID)
	must(t, err)
	staff, err := l.operator.Order(ctx, order.OrderID)
	must(t, err)
	if read.State != "paid" || staff.State != "paid" || len(read.Transfers) != 1 || !read.Transfers[0].Final {
		t.Errorf("%+v", read)
	}
	// A double is owed back, and every answer shows it.
	double := moved
	double.Position, double.Nonce, double.OrderID = 1, "", order.OrderID
	got, err := l.agent.PostTransfer(ctx, double)
	must(t, err)
	if got.Class != "duplicate" || got.Refund == nil || got.Refund.Amount != in.Amount || got.Refund.State != "owed" {
		t.Errorf("%+v", got)
	}
	stored, err := l.agent.Payment(ctx, "shop", payment1)
	must(t, err)
	if stored.Refund == nil || stored.Refund.State != "owed" || stored.Order.Refund == nil {
		t.Errorf("%+v", stored)
	}
}

func TestBC040_AnInFlightAnswerIsNotFinal(t *testing.T) {
	t.Parallel()
	l := start(t)
	in := purchase(payment1)
	claimed, err := l.agent.ClaimPayment(t.Context(), in)
	must(t, err)
	raw, err := json.Marshal(in)
	must(t, err)
	r, err := http.NewRequest(http.MethodPost, l.url+"/v1/payments", strings.NewReader(string(raw)))
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+agentToken)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	must(t, err)
	defer res.Body.Close()
	var p client.Problem
	must(t, json.NewDecoder(res.Body).Decode(&p))
	if res.StatusCode != http.StatusConflict || res.Header.Get("Retry-After") != "5" || p.RetryAfter != 5 || p.Code != client.CodePaymentInFlight || p.Final ||
		!p.Retryable || p.RetryAction != client.RetryPoll || p.OrderID != claimed.OrderID || p.Poll != "/v1/orders/"+claimed.OrderID {
		t.Errorf("%d %v %+v", res.StatusCode, res.Header, p)
	}
	// It can be read before there is an order.
	o, err := l.agent.Order(t.Context(), p.OrderID)
	must(t, err)
	if o.State != "created" || o.Amount != in.Amount {
		t.Errorf("%+v", o)
	}
	in.Amount = "1"
	_, err = l.agent.ClaimPayment(t.Context(), in)
	if !errors.As(err, new(*client.Problem)) || !strings.Contains(err.Error(), client.CodePaymentConflict) {
		t.Errorf("%v", err)
	}
}

// Bad input is refused with the place of what is wrong, and nothing is stored.
func TestBadPaymentsOverHTTP(t *testing.T) {
	t.Parallel()
	l := start(t)
	good, err := json.Marshal(purchase(payment1))
	must(t, err)
	for _, x := range []struct{ from, to, want string }{
		{`"4200000"`, `4200000`, "/amount"},
		{`"4200000"`, `4.2e6`, "/amount"},
		{`"4200000"`, `"-5"`, "/amount"},
		{`"shop"`, `""`, "/gateway"},
		{`"gateway"`, `"gate"`, "/gate"},
		{`"POST"`, `"PO\u0000ST"`, "/request/method"},
		{`{"page":"a"}`, `"{}"`, "/request/arguments"},
		{`"4102444800"`, `"soon"`, "/authorization/valid_before"},
	} {
		status, body := l.post(agentToken, "/v1/payments", strings.Replace(string(good), x.from, x.to, 1))
		if status != http.StatusUnprocessableEntity || !strings.Contains(body, x.want) {
			t.Errorf("%s for %s: %d %s", x.to, x.from, status, body)
		}
	}
	for _, path := range []string{"/v1/payments/" + payment1 + "?gateway=shop", "/v1/orders/nothing", "/v1/orders/00000000-0000-7000-8000-000000000000"} {
		if status, body := l.send(http.MethodGet, agentToken, path, ""); status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if status, body := l.send(http.MethodGet, agentToken, "/v1/payments/"+payment1, ""); status != http.StatusUnprocessableEntity {
		t.Errorf("without a gateway: %d %s", status, body)
	}
	if status, _ := l.post(operatorToken, "/v1/payments", string(good)); status != http.StatusForbidden {
		t.Errorf("a person's token: %d", status)
	}
	// Runs of payments are nobody's to open.
	if _, err := l.agent.Open(t.Context(), "payment/shop/"+payment1, client.RunOptions{Agent: "a"}); err == nil {
		t.Error("an agent opens the run of a payment")
	}
	var n int
	must(t, l.db.Get(t.Context(), &n, `SELECT count(*) FROM payments`))
	if n != 0 {
		t.Error(fmt.Sprint(n, " payments are stored"))
	}
}
