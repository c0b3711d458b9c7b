// A payer that buys a page of examples/gateway, once for each key, whatever crashes. Its
// signatures are those of a node's unlocked account; a wallet would sign in its place.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"quittance/client"
	"quittance/client/x402"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		if errors.Is(err, client.ErrPaymentOpen) {
			os.Exit(3) // run it again with the same key
		}
		os.Exit(1)
	}
}

func run() error {
	intents := flag.String("intents", "intents", "the folder that keeps what is sent; never delete it")
	rpc := flag.String("rpc", "http://127.0.0.1:8545", "a node that signs for the account")
	account := flag.String("account", "", "who pays")
	most := flag.String("most", "1000000", "the highest price that is paid, in the token's smallest unit")
	valid := flag.Duration("valid", 10*time.Minute, "how long a signature can be used")
	patience := flag.Duration("patience", 5*time.Minute, "how long it is asked what became of the payment")
	key := flag.String("key", "", "the purchase's own name: the same one again is the same purchase")
	flag.Parse()
	if flag.NArg() != 2 {
		return errors.New("usage: payer -key order-8 -account 0x... http://127.0.0.1:4021/page '{\"title\":\"ships\"}'")
	}
	w := wallet{rpc: *rpc, account: *account, most: *most, valid: *valid}
	p := client.NewPayer(*intents, w.sign, client.PayPatience(*patience))
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, flag.Arg(0), strings.NewReader(flag.Arg(1)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	paid, err := p.Pay(context.Background(), *key, req)
	if err != nil {
		return err
	}
	fmt.Printf("%d %s replayed=%v payment=%s receipt=%s\n%s", paid.Status, paid.Outcome, paid.Replayed, paid.PaymentID, paid.Receipt, paid.Body)
	return nil
}

// wallet signs for an account of a node's.
type wallet struct {
	rpc, account, most string
	valid              time.Duration
}

// sign signs an authorization of what is offered, if the price is right.
func (w wallet) sign(ctx context.Context, offered x402.Required) (way x402.Requirements, payload json.RawMessage, err error) {
	for _, way = range offered.Accepts {
		number, found := strings.CutPrefix(way.Network, "eip155:")
		price, err := strconv.ParseUint(way.Amount, 10, 63)
		most, err2 := strconv.ParseUint(w.most, 10, 63)
		if way.Scheme != "exact" || !found || err != nil || err2 != nil || price > most {
			continue
		}
		var nonce [32]byte
		_, _ = rand.Read(nonce[:])
		a := x402.Authorization{
			From: w.account, To: way.PayTo, Value: way.Amount, ValidAfter: "0",
			ValidBefore: strconv.FormatInt(time.Now().Add(w.valid).Unix(), 10), Nonce: "0x" + hex.EncodeToString(nonce[:]),
		}
		signature, err := w.typed(ctx, number, way, a)
		if err != nil {
			return way, nil, err
		}
		payload, err = json.Marshal(x402.Exact{Signature: signature, Authorization: a})
		return way, payload, err
	}
	return way, nil, errors.New("none of the offers is one to take")
}

// typed has the node sign the authorization as EIP-712 data.
func (w wallet) typed(ctx context.Context, chain string, way x402.Requirements, a x402.Authorization) (signature string, err error) {
	field := func(name, kind string) map[string]string { return map[string]string{"name": name, "type": kind} }
	data := map[string]any{
		"types": map[string]any{
			"EIP712Domain": []any{field("name", "string"), field("version", "string"), field("chainId", "uint256"), field("verifyingContract", "address")},
			"TransferWithAuthorization": []any{
				field("from", "address"), field("to", "address"), field("value", "uint256"), field("validAfter", "uint256"), field("validBefore", "uint256"), field("nonce", "bytes32"),
			},
		},
		"primaryType": "TransferWithAuthorization",
		"domain":      map[string]any{"name": way.Extra["name"], "version": way.Extra["version"], "chainId": chain, "verifyingContract": way.Asset},
		"message":     a,
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "eth_signTypedData_v4", "params": []any{w.account, data}})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.rpc, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var answer struct {
		Result string
		Error  *struct{ Message string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return "", err
	}
	if answer.Error != nil {
		return "", errors.New(answer.Error.Message)
	}
	return answer.Result, nil
}
