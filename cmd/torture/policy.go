package main

import (
	"fmt"
	"strings"
	"time"
)

// tools are the policy's, one for each kind of round.
var tools = map[kind]string{keeps: "send_payment", ignores: "wire_payment", lands: "push_payment"}

// policyText waits for nothing that the torture does not need. ask is where each kind's
// bank answers look-ups.
func policyText(ask map[kind]string) []byte {
	more := map[kind]string{
		keeps: "vendor_key: {life: 24h}",
		lands: fmt.Sprintf("lands_within: %v", landsWithin),
	}
	var b strings.Builder
	fmt.Fprintf(&b, "release: {hold: 0s, not_taken_hold: 0s}\ntools:\n")
	for _, k := range kinds {
		fmt.Fprintf(&b, `
  %s:
    summary: "Pay {amount} {currency} to {vendor} for {invoice}"
    business_key: "{vendor}/{invoice}"
    amount: {value: amount, currency: currency, unit: minor}
    deadline: %v
    %s
    lookup:
      http: {url: "http://%s/v1/payments?reference={arguments.invoice}"}
      allow_private: true
      found: body.payments.filter(p, p.reference == effect.arguments.invoice)
      match: same_amount(hit.amount, "minor") && hit.currency == effect.currency && hit.payee == effect.arguments.vendor
      final: hit.final
      reference: hit.id
      result: '{"payment_id": hit.id}'
      visible_after: %v
`, tools[k], deadline, more[k], ask[k], seen)
	}
	return []byte(b.String())
}

// seen is what the banks are said to need until a look-up shows a payment: they show it
// at once, and the machine is busy.
const seen = 500 * time.Millisecond
