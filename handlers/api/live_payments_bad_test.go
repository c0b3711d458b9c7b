package api_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"quittance/client"
)

// What gateways may send that must not get in, under every call that takes a payment's name.
func TestBadStepsOverHTTP(t *testing.T) {
	t.Parallel()
	l := start(t)
	in := purchase(payment1)
	claimed, err := l.agent.ClaimPayment(t.Context(), in)
	must(t, err)
	long := strings.Repeat("a", 10_000)
	fence := fmt.Sprint(claimed.Fence)
	body := func(more string) string { return `{"gateway":"shop","fence":` + fence + more + `}` }
	at := "/v1/payments/" + payment1
	for _, x := range []struct {
		name, path, body string
		status           int
	}{
		{"a fence of another", at + "/order", `{"gateway":"shop","fence":999}`, 409},
		{"a negative fence", at + "/order", `{"gateway":"shop","fence":-1}`, 409},
		{"a fence of 2^63", at + "/order", `{"gateway":"shop","fence":9223372036854775808}`, 422},
		{"a fence with a fraction", at + "/order", `{"gateway":"shop","fence":1.5}`, 422},
		{"a fence as text", at + "/order", `{"gateway":"shop","fence":"1"}`, 422},
		{"another gateway", at + "/order", `{"gateway":"bank","fence":` + fence + `}`, 404},
		{"a gateway of 10,000 characters", at + "/order", `{"gateway":"` + long + `","fence":1}`, 404},
		{"an end beyond time", at + "/order", body(`,"expires_in":18446744074`), 422},
		{"an end before the beginning", at + "/order", body(`,"expires_in":-1`), 422},
		{"a memo with a line break", at + "/order", body(`,"memo":"a\nb"`), 422},
		{"a description of 10,000 characters", at + "/order", body(`,"description":"` + long + `"`), 422},
		{"a hash of 10,000 characters", at + "/broadcast", body(`,"hash":"` + long + `"`), 422},
		{"another nonce", at + "/broadcast", body(`,"nonce":"0x` + strings.Repeat("ee", 32) + `"`), 422},
		{"a header with a line break", at + "/finish", body(`,"outcome":"settled","response":{"status":200,"headers":{"X":"a\r\nSet-Cookie: b"}}`), 422},
		{"a header's name with a line break", at + "/finish", body(`,"outcome":"settled","response":{"status":200,"headers":{"X\r\nY":"a"}}`), 422},
		{"a header twice", at + "/finish", body(`,"outcome":"settled","response":{"status":200,"headers":{"X-A":"a","x-a":"b"}}`), 422},
		{"NUL in a header", at + "/finish", body(`,"outcome":"settled","response":{"status":200,"headers":{"X":"a\u0000"}}`), 422},
		{"headers above 32 KiB", at + "/finish", body(`,"outcome":"settled","response":{"status":200,"headers":{"X":"` + strings.Repeat("a", 33<<10) + `"}}`), 422},
		{"a status that is none", at + "/finish", body(`,"outcome":"settled","response":{"status":99999}`), 422},
		{"an answer to what is unknown", at + "/finish", body(`,"outcome":"unknown","response":{"status":200}`), 422},
		{"another outcome", at + "/finish", body(`,"outcome":"failed"`), 422},
		{"a reason of 10,000 characters", at + "/finish", body(`,"outcome":"unknown","why":"` + long + `"`), 422},
		{"a body above 8 MiB", at + "/finish", body(`,"outcome":"settled","response":{"status":200,"body":"` + strings.Repeat("AAAA", 3<<20) + `"}`), 413},
		{"an id with a slash", "/v1/payments/..%2F" + payment1 + "/order", body(""), 404},
		{"an id with NUL", "/v1/payments/payment-00000000%00/order", body(""), 400},
		{"an id of 10,000 characters", "/v1/payments/" + long + "/order", body(""), 404},
		{"NUL in an id to cancel", "/v1/payments/payment-00000000%00/cancel", `{"gateway":"shop"}`, 400},
		{"a read that is spelt otherwise", "/v1/reads/urn:uuid:00000000-0000-7000-8000-000000000000/finish", `{"outcome":"failed"}`, 404},
		{"a read with NUL", "/v1/reads/%00/finish", `{"outcome":"failed"}`, 400},
		{"an order that is spelt otherwise", "/v1/transfers", `{"network":"n","tx":"t","position":0,"asset":"a","from":"f","to":"t","amount":"1","order_id":"urn:uuid:00000000-0000-7000-8000-000000000000"}`, 422},
		{"a place beyond numbers", "/v1/transfers", `{"network":"n","tx":"t","position":9223372036854775807,"asset":"a","from":"f","to":"t","amount":"1"}`, 422},
		{"an amount beyond numbers", "/v1/transfers", `{"network":"n","tx":"t","position":0,"asset":"a","from":"f","to":"t","amount":"` + strings.Repeat("9", 39) + `"}`, 422},
		{"a block's hash of 10,000 characters", "/v1/transfers", `{"network":"n","tx":"t","position":0,"asset":"a","from":"f","to":"t","amount":"1","block_hash":"` + long + `"}`, 422},
	} {
		if status, answer := l.post(agentToken, x.path, x.body); status != x.status {
			t.Errorf("%s: %d %.300s", x.name, status, answer)
		}
	}
	for path, want := range map[string]int{
		"/v1/payments/" + payment1 + "?gateway=shop%00":            400,
		"/v1/payments/payment-00000000%00?gateway=shop":            400,
		"/v1/payments/..%2F" + payment1 + "?gateway=shop":          404,
		"/v1/orders/urn:uuid:00000000-0000-7000-8000-000000000000": 404,
		"/v1/orders/%7B00000000-0000-7000-8000-000000000000%7D":    404,
		"/v1/orders/%00":                400,
		"/v1/orders/" + claimed.OrderID: 200,
	} {
		if status, answer := l.send(http.MethodGet, agentToken, path, ""); status != want {
			t.Errorf("%s: %d %.300s", path, status, answer)
		}
	}
	if p, err := l.agent.Payment(t.Context(), "shop", payment1); err != nil || p.State != "in_flight" || p.Order != nil {
		t.Errorf("%+v, %v", p, err)
	}
}

// Of a body above what is kept, its size and digest are; of the headers, none that let
// somebody in or speak of one connection.
func TestTheFrozenAnswerOverHTTP(t *testing.T) {
	t.Parallel()
	l := start(t)
	in := purchase(payment1)
	claimed, err := l.agent.ClaimPayment(t.Context(), in)
	must(t, err)
	at := client.PaymentStep{Gateway: "shop", Fence: claimed.Fence}
	raw, err := json.Marshal(map[string]any{
		"gateway": "shop", "fence": at.Fence, "outcome": "settled", "response": map[string]any{
			"status": 200, "body": base64.StdEncoding.EncodeToString(make([]byte, 1<<20)),
			"headers": map[string]string{"Set-Cookie": "s=1", "x-API-key": "k", "Authorization": "Bearer x", "Connection": "close", "Content-Type": "text/plain"},
		},
	})
	must(t, err)
	if status, body := l.post(agentToken, "/v1/payments/"+payment1+"/finish", string(raw)); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	again, err := l.agent.ClaimPayment(t.Context(), in)
	must(t, err)
	r := again.Response
	if r == nil || !r.Cut || r.Digest == "" || len(r.Body) != 0 || len(r.Headers) != 1 || r.Headers["Content-Type"] != "text/plain" {
		t.Errorf("%+v", r)
	}
}
