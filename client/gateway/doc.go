// Package gateway sells calls over HTTP and is never paid twice for one, nor does what was
// paid for twice, whatever crashes. It is middleware for net/http around a handler that
// knows nothing of payments:
//
//	g := gateway.New(gateway.Options{Quittance: c, Name: "shop", Facilitator: &gateway.HTTPFacilitator{URL: "https://..."}})
//	mux.Handle("POST /report", g.Paid(gateway.Route{Tool: "report", Accepts: ways}, report))
//
// It speaks x402 version 2 (package x402). For each paid request it looks the payment id up
// at Quittance, has the payment verified, creates the order, records and does the work,
// records and sends the payment, and freezes the answer, which every repeat gets again.
// Where Quittance cannot be reached it answers 503, never 402, and settles nothing.
package gateway
