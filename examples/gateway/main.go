// A gateway that sells a page for a dollar token on a local chain, through Quittance, and
// is never paid twice for one. See docs/gateways.md; the payer beside it is
// examples/payer.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"quittance/client"
	"quittance/client/gateway"
	"quittance/client/x402"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	listen := flag.String("listen", "127.0.0.1:4021", "where payers reach the gateway")
	server := flag.String("quittance", "http://127.0.0.1:8080", "Quittance; its token is in QUITTANCE_TOKEN")
	name := flag.String("name", "shop", "the gateway's name in the policy")
	rpc := flag.String("rpc", "http://127.0.0.1:8545", "a node with an unlocked account")
	sender := flag.String("sender", "", "the account that submits authorizations, and pays for gas")
	asset := flag.String("asset", "", "the token's contract")
	payTo := flag.String("pay-to", "", "who is paid")
	amount := flag.String("amount", "1000000", "the price, in the token's smallest unit")
	chain := flag.Int("chain", 31337, "the chain's number")
	pages := flag.String("pages", "", "a file that notes each page that was made")
	flag.Parse()

	q := client.New(*server, os.Getenv(client.EnvToken), client.WithPatience(5*time.Second))
	defer q.Close()
	network := fmt.Sprintf("eip155:%d", *chain)
	f := &facilitator{node: node{*rpc}, sender: *sender, asset: *asset}
	g := gateway.New(gateway.Options{
		Quittance: q, Name: *name, Facilitator: f, Transfers: f.transfers,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	price := x402.Requirements{
		Scheme: "exact", Network: network, Asset: *asset, Amount: *amount, PayTo: *payTo, MaxTimeoutSeconds: 60,
		Extra: map[string]any{"name": "USD Coin", "version": "2"}, // of the token's EIP-712 domain
	}
	mux := http.NewServeMux()
	mux.Handle("POST /page", g.Paid(gateway.Route{Tool: "make_page", Accepts: []x402.Requirements{price}, Description: "A page", MimeType: "application/json"}, &maker{file: *pages}))
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Printf("selling pages at http://%s/page\n", l.Addr())
	return (&http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}).Serve(l)
}

// maker is what is sold, and knows nothing of payments.
type maker struct {
	file string
	mu   sync.Mutex
}

func (m *maker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var order struct {
		Title string `json:"title"`
	}
	if json.NewDecoder(r.Body).Decode(&order) != nil || order.Title == "" {
		http.Error(w, "a page needs a title", http.StatusUnprocessableEntity) // refused: it is not paid for
		return
	}
	if err := m.note(order.Title); err != nil {
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]string{"page": "All about " + order.Title})
}

func (m *maker) note(title string) error {
	if m.file == "" {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f, err := os.OpenFile(m.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, title)
	return err
}
