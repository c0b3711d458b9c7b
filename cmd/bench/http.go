package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"

	"quittance/handlers/api"
	"quittance/reconcile/effects"
	"quittance/web"
)

func handler(o api.Options, log *slog.Logger) (http.Handler, error) {
	router, err := web.New(web.Options{Log: log})
	if err != nil {
		return nil, err
	}
	return router, api.Register(router, o)
}

// client keeps its connections, as an agent does.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 512, MaxIdleConns: 512}}

func (b *bench) post(ctx context.Context, path string, body, answer any) error {
	j, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.base+path, bytes.NewReader(j))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+b.token)
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= 300 {
		return fmt.Errorf("%s answered %d: %s", path, res.StatusCode, text)
	}
	return json.Unmarshal(text, answer)
}

type begun struct {
	EffectID string `json:"effect_id"`
	Fence    int64  `json:"fence"`
}

func (b *bench) httpBegin(ctx context.Context, l effects.Lease, i int) (a begun, err error) {
	err = b.post(ctx, "/v1/effects", map[string]any{
		"run_id": l.RunID, "lease": l.Token, "attempt_id": strconv.Itoa(i), "tool": "send_payment",
		"arguments": json.RawMessage(b.arguments(l.RunID, i)),
	}, &a)
	return a, err
}

func (b *bench) httpBeginner(ctx context.Context) (func() error, error) {
	l, err := b.open(ctx)
	i := 0
	return func() error {
		i++
		_, err := b.httpBegin(ctx, l, i)
		return err
	}, err
}

func (b *bench) httpEffect(ctx context.Context) (func() error, error) {
	l, err := b.open(ctx)
	i := 0
	return func() error {
		i++
		a, err := b.httpBegin(ctx, l, i)
		if err != nil {
			return err
		}
		var done struct{}
		return b.post(ctx, "/v1/effects/"+a.EffectID+"/finish", map[string]any{
			"fence": a.Fence, "outcome": "taken", "reference": a.EffectID, "result": map[string]string{"payment_id": a.EffectID},
		}, &done)
	}, err
}
