package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"quittance/client"
)

// An agent pays an invoice, dies before it can note that it did, and is started again.
func Example() {
	server := client.StartFake()
	defer server.Close()
	spool, err := os.MkdirTemp("", "spool")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(spool)

	ctx := context.Background()
	invoice := map[string]string{"vendor": "ACME Tools", "invoice": "INV-9", "amount": "4200.00", "currency": "USD"}
	pay := func(_ context.Context, call client.Call) (any, error) {
		// A real agent calls its bank here and passes call.VendorKey on.
		fmt.Println("paying", invoice["invoice"], "with key", call.VendorKey)
		return client.Reference("tr_9", map[string]string{"transfer": "tr_9"}), nil
	}

	for start := range 2 {
		c := client.New(server.URL, "agent-token", client.WithSpool(spool))
		run, err := c.Open(ctx, "pay-INV-9", client.RunOptions{Agent: "payer"})
		if err != nil {
			log.Fatal(err)
		}
		out, err := run.Do(ctx, "send_payment", invoice, pay)
		switch {
		case errors.Is(err, client.ErrPaused):
			fmt.Println("a person is asked:", err)
		case err != nil:
			log.Fatal(err)
		default:
			fmt.Printf("start %d: %s, replayed: %v\n", start+1, out.Reference, out.Replayed)
		}
		_ = run.Release(ctx) // a process that is killed cannot; its lease runs out
		c.Close()
	}
	// Output:
	// paying INV-9 with key vendor-e1
	// start 1: tr_9, replayed: false
	// start 2: tr_9, replayed: true
}

// Where nobody knows whether a call took effect, the run waits for whoever finds out.
func ExampleRun_Wait() {
	server := client.StartFake()
	defer server.Close()
	c := client.New(server.URL, "agent-token")
	defer c.Close()
	ctx := context.Background()
	run, err := c.Open(ctx, "r", client.RunOptions{Agent: "payer"})
	if err != nil {
		log.Fatal(err)
	}
	_, err = run.Do(ctx, "send_payment", map[string]string{"invoice": "INV-9"}, func(context.Context, client.Call) (any, error) {
		return nil, errors.New("the connection broke after the request was sent")
	})
	if paused, ok := errors.AsType[*client.Paused](err); ok {
		fmt.Println(paused.WaitingFor[0].Reason)
		// Either give the run back, and be started again when it is ready:
		_ = run.Release(ctx)
		// or keep it, run.Wait(ctx), and call Do again with the same arguments.
	}
	// Output: interrupted
}
