package api_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"quittance/client"
	"quittance/internal/chain"
)

// A payment by authorization whose outcome nobody learned is decided by the chain: one that
// landed is replayed, one that was cancelled may be made again, and one that can still be
// used waits.
func TestTheChainDecidesWhatNobodyLearned(t *testing.T) {
	t.Parallel()
	c := chain.StartWith(t, chain.Options{Time: time.Now().Add(-time.Minute)})
	dollar, payer, shop := c.Deploy(chain.Dollar), chain.NewWallet("payer"), chain.NewWallet("shop").Address
	c.Mint(dollar, payer.Address, 1_000_000_000)
	c.Finalize()
	l := startUnder(t, fmt.Sprintf(`
tools:
  pay_shop:
    business_key: "{order}"
    deadline: 30s
    lookup:
      eip3009:
        rpc: %s
        chain_id: %d
        asset: "%s"
        authorizer: "{arguments.from}"
        nonce: "{arguments.nonce}"
        valid_before: "{arguments.valid_before}"
        recipient: "{arguments.to}"
        value: "{arguments.value}"
        signature: "{arguments.signature}"
        valid_after: "{arguments.valid_after}"
        domain: {name: USD Coin, version: "2"}
      allow_private: true
`, c.URL, c.ID, dollar))
	for _, outcome := range []struct {
		what     string
		happens  func(submit, cancel []byte)
		state    string
		performs int
	}{
		{"landed", func(submit, _ []byte) { c.Send(c.Account(1), dollar, submit); c.Finalize() }, "taken", 1},
		{"cancelled", func(_, cancel []byte) { c.Send(c.Account(1), dollar, cancel); c.Finalize() }, "cleared", 2},
		{"open", func(_, _ []byte) {}, "interrupted", 1},
		{"not final", func(submit, _ []byte) { c.Send(c.Account(1), dollar, submit) }, "interrupted", 1},
	} {
		a, s := c.Authorize(dollar, payer, shop, 5_000_000, outcome.what, time.Now().Add(time.Hour))
		call := map[string]any{"order": outcome.what, "from": a.From.String(), "to": a.To.String(), "value": a.Value.String(), "nonce": a.Nonce.String(),
			"valid_after": a.ValidAfter.String(), "valid_before": a.ValidBefore.String(), "signature": s.String()}
		performs := 0
		pay := func(context.Context, client.Call) (any, error) {
			performs++
			if performs > 1 {
				return map[string]string{"again": "yes"}, nil
			}
			outcome.happens(chain.TransferCall(a, s), c.CancelCall(dollar, payer, a.Nonce))
			return nil, errors.New("the connection broke")
		}
		run := "run " + outcome.what
		r := l.open(run)
		id := ""
		_, err := r.Do(t.Context(), "pay_shop", call, func(ctx context.Context, c client.Call) (any, error) {
			id = c.EffectID
			return pay(ctx, c)
		})
		if !errors.Is(err, client.ErrPaused) {
			t.Fatalf("%s: %v", outcome.what, err)
		}
		must(t, r.Release(t.Context()))
		look := l.looked(id)
		e, err := l.operator.Effect(t.Context(), id)
		must(t, err)
		if e.State != outcome.state {
			t.Errorf("%s: %s after a look that says %s: %s", outcome.what, e.State, look.Reason, look.Why)
		}
		if outcome.state == "interrupted" {
			continue
		}
		result, err := l.openWhenReady(run).Do(t.Context(), "pay_shop", call, pay)
		if err != nil || performs != outcome.performs {
			t.Errorf("%s: performed %d times, %v", outcome.what, performs, err)
		}
		if outcome.state == "taken" && !strings.Contains(string(result.Result), `"transaction":"0x`) {
			t.Errorf("%s: the result is %s", outcome.what, result.Result)
		}
	}
}

// looked waits for the first look at an effect that got an answer.
func (l *live) looked(id string) client.LookUpView {
	l.t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		e, err := l.operator.Effect(l.t.Context(), id)
		must(l.t, err)
		if n := len(e.LookUps); n > 0 && e.LookUps[0].Reason != "" {
			return e.LookUps[0]
		}
	}
	l.t.Fatal("nobody looked")
	return client.LookUpView{}
}
