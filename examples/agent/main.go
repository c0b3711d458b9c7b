// The agent pays the invoices of a file, each exactly once, however often it is killed
// and started again.
//
//	QUITTANCE_URL=http://127.0.0.1:8080 QUITTANCE_TOKEN=... \
//	  go run ./examples/agent -run payday-2026-06 -bank http://127.0.0.1:9090 invoices.json
//
// The file holds a JSON list of {"vendor", "invoice", "amount", "currency"}. The agent
// exits with 3 when a person has to find something out first; started again, it goes
// on where it stood.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"syscall"
	"time"

	"quittance/client"
)

// Invoice is one line of work.
type Invoice struct {
	Vendor   string `json:"vendor"`
	Invoice  string `json:"invoice"`
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
}

// state is what a checkpoint holds: how far the agent came.
type state struct {
	Paid int `json:"paid"`
}

// exitPaused tells a supervisor that starting again at once is of no use.
const exitPaused = 3

func main() {
	runID := flag.String("run", "", "the run's own name; the same name goes on with the same run")
	bankURL := flag.String("bank", "http://127.0.0.1:9090", "the bank's address")
	wait := flag.Bool("wait", false, "wait for a person instead of exiting")
	flag.Parse()
	if *runID == "" || flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	invoices, err := readInvoices(flag.Arg(0))
	if err != nil {
		log.Fatal(err)
	}
	c := client.New(os.Getenv("QUITTANCE_URL"), os.Getenv("QUITTANCE_TOKEN"))
	defer c.Close()
	switch err := payAll(context.Background(), c, *runID, &bank{url: *bankURL}, invoices, *wait); {
	case errors.Is(err, client.ErrRunClosed):
		log.Print("the run is finished already")
	case errors.Is(err, client.ErrPaused):
		log.Print(err)
		os.Exit(exitPaused)
	case err != nil:
		log.Fatal(err)
	}
}

func payAll(ctx context.Context, c *client.Client, runID string, b *bank, invoices []Invoice, wait bool) error {
	run, err := c.Open(ctx, runID, client.RunOptions{Agent: "invoice-agent"})
	if err != nil {
		return err
	}
	defer run.ReleaseOnSignal(20*time.Second, syscall.SIGTERM, os.Interrupt)()
	var at state
	if _, err := run.State(&at); err != nil {
		return err
	}
	for at.Paid < len(invoices) {
		err := payOne(ctx, run, b, invoices[at.Paid])
		if errors.Is(err, client.ErrPaused) && wait {
			log.Print(err)
			if err := run.Wait(ctx); err != nil {
				return err
			}
			continue // the same call again: it is replayed, or cleared
		}
		if err != nil {
			return errors.Join(err, run.Release(ctx))
		}
		at.Paid++
		if err := run.Checkpoint(ctx, int64(at.Paid), at); err != nil {
			return err
		}
	}
	return run.Close(ctx, client.RunFinished)
}

func payOne(ctx context.Context, run *client.Run, b *bank, invoice Invoice) error {
	out, err := run.Do(ctx, "send_payment", invoice, func(ctx context.Context, call client.Call) (any, error) {
		return b.pay(ctx, invoice, call.VendorKey)
	})
	if refusal, ok := errors.AsType[*client.RefusedError](err); ok {
		// A definite no is an answer: the invoice is left for a person's list.
		log.Printf("%s was refused: %s", invoice.Invoice, refusal.Reason)
		return nil
	}
	if err != nil {
		return err
	}
	log.Printf("%s is paid as %s (replayed: %v)", invoice.Invoice, out.Reference, out.Replayed)
	return nil
}

func readInvoices(path string) (list []Invoice, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("couldn't read the invoices: %w", err)
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("couldn't read the invoices: %w", err)
	}
	return list, nil
}
