package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"quittance/client"
)

func TestPayTellsPaidRefusedAndUnknownApart(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		status int
		body   string
		want   string
	}{
		{"paid", 201, `{"id":"tr_1"}`, "paid"},
		{"declined", 422, `{"code":"iban_checksum"}`, "refused"},
		{"a 2xx without a payment", 200, `{}`, "unknown"},
		{"a sign-in page", 200, `<html>`, "unknown"},
		{"a proxy's 404", 404, `<html>`, "unknown"},
		{"a time-out of the bank's own", 408, `{"code":"timeout"}`, "unknown"},
		{"a failure", 500, `{"code":"oops"}`, "unknown"},
		{"a gateway's", 504, ``, "unknown"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Idempotency-Key") != "vk" {
					t.Error("the vendor key is not passed on")
				}
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			}))
			defer s.Close()
			_, err := (&bank{url: s.URL}).pay(t.Context(), Invoice{Invoice: "INV-9"}, "vk")
			_, refused := errors.AsType[*client.RefusedError](err)
			got := "unknown"
			switch {
			case err == nil:
				got = "paid"
			case refused:
				got = "refused"
			}
			if got != tc.want {
				t.Errorf("%s (%v), want %s", got, err, tc.want)
			}
		})
	}
}
