package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// node is a chain's, asked over JSON-RPC.
type node struct{ url string }

// receipt is what became of a transaction.
type receipt struct {
	Status, BlockNumber, BlockHash string
	Logs                           []struct {
		Address, Data string
		Topics        []string
	}
}

// receipt is nil while the transaction is in no block.
func (n node) receipt(ctx context.Context, tx string) (got *receipt, err error) {
	return got, n.ask(ctx, &got, "eth_getTransactionReceipt", tx)
}

func (n node) ask(ctx context.Context, out any, method string, params ...any) error {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var answer struct {
		Result json.RawMessage
		Error  *struct{ Message string }
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 16<<20)).Decode(&answer); err != nil {
		return fmt.Errorf("couldn't read the node's answer to %s: %w", method, err)
	}
	if answer.Error != nil {
		return fmt.Errorf("the node refused %s: %s", method, answer.Error.Message)
	}
	return json.Unmarshal(answer.Result, out)
}
