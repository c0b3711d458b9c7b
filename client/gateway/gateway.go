package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"quittance/client"
	"quittance/client/x402"
)

// Options are what a gateway works with.
type Options struct {
	// Quittance records what happens, as the owner of the gateway's token. A patience of a
	// few seconds lets a payer hear soon that it should come again.
	Quittance *client.Client
	// Name is the gateway's in the policy.
	Name        string
	Facilitator Facilitator
	// FacilitatorTimeout bounds each of its answers; 60 s when 0. The policy's
	// timeouts.facilitator must not be shorter.
	FacilitatorTimeout time.Duration
	// Transfers reads what a transaction moved, so that it is on record at once. Without it
	// Quittance asks the rail itself, some seconds later.
	Transfers func(ctx context.Context, network, tx string) ([]client.Transfer, error)
	// BodyLimit bounds a request's body in bytes; 1 MiB when 0.
	BodyLimit int64
	// Log receives what nobody waits for; nothing when nil, and never a body.
	Log *slog.Logger
}

// Gateway makes handlers paid ones. Safe for concurrent use; any number of processes may
// serve the same gateway.
type Gateway struct {
	Options
	instance string // tells this process's tries from others'

	mu   sync.Mutex
	busy map[string]bool // payment ids that this process is at work on
}

// New makes a gateway. It sends nothing yet.
func New(o Options) *Gateway {
	if o.FacilitatorTimeout == 0 {
		o.FacilitatorTimeout = time.Minute
	}
	if o.BodyLimit == 0 {
		o.BodyLimit = 1 << 20
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Gateway{Options: o, instance: rand.Text(), busy: map[string]bool{}}
}

// Route is what is sold at one place.
type Route struct {
	// Accepts are the ways to pay. Price, where set, says them for a request.
	Accepts []x402.Requirements
	Price   func(r *http.Request, body []byte) ([]x402.Requirements, error)
	// Tool is the policy's name for what is sold; the path of the request when "".
	Tool string
	// Arguments are what is bought, an object: with the tool they tell one purchase from
	// another. Without it they are the body where that is a JSON object and all there is,
	// else an object of path, query and body; the path is in it where the route has a Tool
	// and not a pattern of net/http that matches one path only.
	Arguments   func(r *http.Request, body []byte) (json.RawMessage, error)
	Description string // for the 402 and the receipt
	MimeType    string
	// Cacheable: a read, without effects, that the policy marks cacheable. Asked again by
	// the same payer within two minutes it costs nothing.
	Cacheable bool
	// MemoPayer says who asks, as the address that its transfers come from: a payment by
	// [x402.SchemeMemo] holds nothing signed. Without it none is taken; its error is for the
	// payer.
	MemoPayer func(r *http.Request) (string, error)
	// MemoFinal waits with the work until the transfer cannot be reorganised away any more.
	MemoFinal bool
	// RequireID refuses payers that bring no payment id. Otherwise the nonce of their
	// authorization stands for one: a resend meets what it began, a new signature does not.
	RequireID bool
}

// Paid wraps what is sold. The handler gets a context that outlives the payer's
// connection, and ends when the work may be taken over. What it answers below 400 is paid
// for; 400 to 499 means that it refused and did nothing; 500 and above, and a panic, that
// nobody knows what it did.
func (g *Gateway) Paid(route Route, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.serve(r, route, h).write(w)
	})
}

// enter lets one request at a time work on a payment id: the tries of this process share
// an attempt id, by which a try goes on where an earlier one gave up early.
func (g *Gateway) enter(id string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.busy[id] {
		return false
	}
	g.busy[id] = true
	return true
}

func (g *Gateway) leave(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.busy, id)
}

// mostLater bounds for how long something is delivered again; after that Quittance has
// found out by itself, or a person has.
const mostLater = time.Hour

// later delivers what Quittance could not be told, until it can.
func (g *Gateway) later(what, id string, f func(context.Context) error) {
	go func() {
		for began, pause := time.Now(), time.Second; time.Since(began) < mostLater; pause = min(2*pause, time.Minute) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			err := f(ctx)
			cancel()
			if !unreachable(err) {
				if err != nil {
					g.Log.Warn("delivered late, and refused", "what", what, "payment_id", id, "error", err)
				}
				return
			}
			time.Sleep(pause)
		}
		g.Log.Error("not delivered", "what", what, "payment_id", id)
	}()
}
