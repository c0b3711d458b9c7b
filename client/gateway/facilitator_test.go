package gateway_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"quittance/client/gateway"
	"quittance/client/x402"
)

// What a facilitator answers over HTTP is a verdict only where it is one: everything else
// is an error, beside which a transaction that was named is kept.
func TestAFacilitatorOverHTTP(t *testing.T) {
	t.Parallel()
	var status int
	var body string
	var asked map[string]any
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = nil
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		if r.Header.Get("Authorization") != "Bearer f" {
			t.Errorf("credentials %q", r.Header.Get("Authorization"))
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	f := &gateway.HTTPFacilitator{URL: s.URL + "/", Header: http.Header{"Authorization": {"Bearer f"}}}
	p := x402.Payload{X402Version: 2, Accepted: price, Payload: json.RawMessage(`{"signature":"0x"}`)}

	for _, c := range []struct {
		status      int
		body        string
		valid, fail bool
		reason      string
	}{
		{200, `{"isValid":true,"payer":"0xa"}`, true, false, ""},
		{200, `{"isValid":false,"invalidReason":"insufficient_funds"}`, false, false, "insufficient_funds"},
		{400, `{"isValid":false,"invalidReason":"invalid_payload"}`, false, false, "invalid_payload"},
		{400, `{"isValid":true}`, false, false, ""},
		{500, `{"isValid":true}`, false, true, ""},
		{200, `{}`, false, true, ""},
		{200, `<html>`, false, true, ""},
		{307, `{"isValid":true}`, false, false, ""},
	} {
		status, body = c.status, c.body
		v, err := f.Verify(t.Context(), p, price)
		if v.IsValid != c.valid || (err != nil) != c.fail || v.InvalidReason != c.reason {
			t.Errorf("verify, %d %s: %+v, %v", c.status, c.body, v, err)
		}
	}
	if asked["x402Version"] != 2.0 || asked["paymentPayload"] == nil || asked["paymentRequirements"] == nil {
		t.Errorf("asked %v", asked)
	}
	for _, c := range []struct {
		status        int
		body          string
		success, fail bool
		tx            string
	}{
		{200, `{"success":true,"transaction":"0x9f"}`, true, false, "0x9f"},
		{200, `{"success":false,"errorReason":"settlement_pending","transaction":"0x9f"}`, false, false, "0x9f"},
		{502, `{"success":true,"transaction":"0x9f"}`, false, true, "0x9f"},
		{200, `<html>`, false, true, ""},
		{308, `{"success":true,"transaction":"0x9f"}`, false, true, "0x9f"},
	} {
		status, body = c.status, c.body
		got, err := f.Settle(t.Context(), p, price)
		if got.Success != c.success || (err != nil) != c.fail || got.Transaction != c.tx {
			t.Errorf("settle, %d %s: %+v, %v", c.status, c.body, got, err)
		}
	}
}
