// Package client is the guard that an agent puts around its side-effecting calls,
// the wire types of Quittance's HTTP API, and a plain caller for each route.
// It needs the standard library only.
//
// An agent opens a run and hands every dangerous call to [Run.Do]:
//
//	c := client.New(url, token)
//	run, err := c.Open(ctx, "invoice-INV-9", client.RunOptions{Agent: "payer"})
//	out, err := run.Do(ctx, "send_payment", args, func(ctx context.Context, call client.Call) (any, error) {
//		return bank.Pay(ctx, args, call.VendorKey)
//	})
//	if errors.Is(err, client.ErrPaused) {
//		// a person is asked; stop here, or run.Wait(ctx) and call Do again
//	}
//
// The intent is durable before the call is performed, and what became of it is
// recorded afterwards. After a crash the same code runs again: what is known is
// replayed, and what is not known pauses the run until somebody has found out.
package client
