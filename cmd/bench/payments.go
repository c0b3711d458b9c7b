package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"quittance/ledger/ceiling"
)

// payments measures one gateway over HTTP: what a claim, a replay and the answer to a
// payment in flight cost in bare prepared commits.
func (b *bench) payments(ctx context.Context, length time.Duration) error {
	n := int(b.runs.Add(1)) * 10_000_000
	ask := func(id string, nonce int, answer any) error {
		return b.post(ctx, "/v1/payments", map[string]any{
			"payment_id": id, "gateway": "shop", "payer": "0xa000000000000000000000000000000000000001", "network": "eip155:1", "amount": "4200000",
			"asset": "0x1000000000000000000000000000000000000001", "pay_to": "0x2000000000000000000000000000000000000002", "quote": "quote-" + id,
			"request":       map[string]any{"method": "POST", "tool": "write_page", "arguments": map[string]string{"page": id, "text": strings.Repeat("x", 200)}},
			"authorization": map[string]string{"nonce": fmt.Sprintf("0x%064x", nonce), "valid_before": "4102444800"},
		}, answer)
	}
	claim := func() error {
		n++
		var a struct{ Do string }
		return ask(fmt.Sprintf("payment-%012d", n), n, &a)
	}
	round := b.runs.Add(1)
	settled, flying := fmt.Sprintf("payment-settled-%04d", round), fmt.Sprintf("payment-flying-%05d", round)
	var first struct{ Fence int64 }
	if err := ask(settled, int(round)*10_000_000+9_999_998, &first); err != nil {
		return err
	}
	if err := b.post(ctx, "/v1/payments/"+settled+"/finish", map[string]any{
		"gateway": "shop", "fence": first.Fence, "outcome": "settled", "response": map[string]any{"status": 200, "body": "AAAA"},
	}, &first); err != nil {
		return err
	}
	if err := ask(flying, int(round)*10_000_000+9_999_999, &first); err != nil {
		return err
	}
	refused := func() error {
		if err := ask(flying, int(round)*10_000_000+9_999_999, &first); err == nil || !strings.Contains(err.Error(), "payment_in_flight") {
			return fmt.Errorf("a payment in flight is answered %v", err)
		}
		return nil
	}
	names := []string{"Bare/commit", "Payment/claim", "Payment/replay", "Payment/in-flight"}
	calls := []func() error{ceiling.Bare(ctx, b.db, strings.Repeat("x", 400)), claim, func() error { return ask(settled, int(round)*10_000_000+9_999_998, &first) }, refused}
	times := make([][]time.Duration, len(calls))
	for end := time.Now().Add(4 * length); time.Now().Before(end); {
		if time.Since(end.Add(-4*length)) > 170*time.Second {
			return fmt.Errorf("a payment in flight is old after 180 s: measure for less than 40 s")
		}
		for i, f := range calls {
			start := time.Now()
			if err := f(); err != nil {
				return err
			}
			times[i] = append(times[i], time.Since(start))
		}
	}
	for i, t := range times {
		slices.Sort(t)
		bare := times[0]
		p99 := t[len(t)*99/100]
		fmt.Printf("Benchmark%s \t%d\t%d ns/op\t%.2f commits\t%d p99-ns\t%.2f p99-of-p50\n", names[i], len(t), median(t).Nanoseconds(),
			float64(median(t))/float64(median(bare)), p99.Nanoseconds(), float64(p99)/float64(median(t)))
	}
	return nil
}
