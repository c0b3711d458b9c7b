package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"quittance/client"
)

func TestBC001_AReplayMeetsThePauseAndNamesTheDecision(t *testing.T) {
	t.Parallel()
	l := start(t)
	id := l.lose(l.open("run-ap-771"), "send_payment", inv9)
	_, err := l.agent.Open(t.Context(), "run-ap-771", client.RunOptions{Agent: "ap-bot"})
	p, ok := errors.AsType[*client.Paused](err)
	if !ok || len(p.WaitingFor) != 1 || p.WaitingFor[0].EffectID != id || p.WaitingFor[0].Reason != "interrupted" {
		t.Fatalf("got %v", err)
	}
	if q := l.queue(); len(q) != 1 || q[0].EffectID != id || q[0].Amount == nil || *q[0].Amount != (client.Amount{Value: "4200.00", Currency: "USD"}) {
		t.Errorf("the queue shows %+v", q)
	}
}

func TestBC004_NineStartsAreOneCard(t *testing.T) {
	t.Parallel()
	l := start(t)
	id := l.lose(l.open("run-rf-9"), "refund_charge", map[string]string{"charge": "ch_77", "amount": "31.50", "currency": "EUR"})
	for start := range 8 {
		if _, err := l.agent.Open(t.Context(), "run-rf-9", client.RunOptions{Agent: "ap-bot"}); !errors.Is(err, client.ErrPaused) {
			t.Errorf("start %d: %v", start+2, err)
		}
	}
	q := l.queue()
	if len(q) != 1 || q[0].Refused != 8 {
		t.Fatalf("the queue shows %+v", q)
	}
	v, err := l.operator.Effect(t.Context(), id)
	if err != nil || len(v.Refused) != 8 || len(v.Attempts) != 1 {
		t.Errorf("%d refused starts, %d attempts, %v", len(v.Refused), len(v.Attempts), err)
	}
}

func TestBC003_CallIDsAreNotesOnly(t *testing.T) {
	t.Parallel()
	l := start(t)
	args := map[string]string{"operation": "op-55", "amount": "87.40", "currency": "USD"}
	for start, id := range []string{"call_1", "call_3", "call_5"} {
		r := l.open("run-chg-3")
		perform := unexpected(t)
		if start == 0 {
			perform = func(context.Context, client.Call) (any, error) { return map[string]string{"charge": "ch_a1"}, nil }
		}
		out, err := r.Do(t.Context(), "charge_card", args, perform, client.CallID(id))
		if err != nil || string(out.Result) != `{"charge":"ch_a1"}` || out.Replayed != (start > 0) {
			t.Errorf("start %d: %+v %v", start+1, out, err)
		}
		must(t, r.Release(t.Context()))
	}
	if q := l.queue(); len(q) != 0 {
		t.Errorf("the queue shows %+v", q)
	}
}

func TestBC006_OneOfThreeWorkersHoldsTheRun(t *testing.T) {
	t.Parallel()
	l := start(t)
	type result struct {
		run *client.Run
		err error
	}
	results := make(chan result, 3)
	for i := range 3 {
		go func() {
			r, err := l.agent.Open(t.Context(), "run-zd-1", client.RunOptions{Agent: "a", Worker: fmt.Sprint("worker-", i)})
			results <- result{r, err}
		}()
	}
	var holder *client.Run
	for range 3 {
		got := <-results
		p, isProblem := errors.AsType[*client.Problem](got.err)
		switch {
		case got.err == nil && holder == nil:
			holder = got.run
		case isProblem && errors.Is(got.err, client.ErrRunHeld) && p.HeldBy != nil && strings.HasPrefix(p.HeldBy.Worker, "worker-") && p.RetryAfter > 0:
		default:
			t.Errorf("got %+v, %v", got.run, got.err)
		}
	}
	if holder == nil {
		t.Fatal("nobody holds the run")
	}
	if out, err := holder.Do(t.Context(), "create_ticket", map[string]string{"customer": "C-18"}, func(context.Context, client.Call) (any, error) { return 1, nil }); err != nil || out.Replayed {
		t.Errorf("%+v %v", out, err)
	}
	if q := l.queue(); len(q) != 0 {
		t.Errorf("the losers left %+v", q)
	}
}

func TestBC009_ADefiniteFailureIsReplayed(t *testing.T) {
	t.Parallel()
	l := start(t)
	r := l.open("r")
	_, err := r.Do(t.Context(), "send_payment", inv9, func(context.Context, client.Call) (any, error) {
		return nil, client.Refused("IBAN checksum")
	})
	if _, ok := errors.AsType[*client.RefusedError](err); !ok {
		t.Fatal(err)
	}
	must(t, r.Release(t.Context()))
	out, err := l.open("r").Do(t.Context(), "send_payment", inv9, unexpected(t))
	refusal, ok := errors.AsType[*client.RefusedError](err)
	if !ok || !refusal.Replayed || string(refusal.Reason) != `"IBAN checksum"` || out.Outcome != client.OutcomeFailed {
		t.Errorf("%+v %v", out, err)
	}
	if q := l.queue(); len(q) != 0 {
		t.Errorf("shown as open: %+v", q)
	}
}

func TestBC011_AResumedBatchReplaysWhatAPersonFound(t *testing.T) {
	t.Parallel()
	l := start(t)
	r := l.open("r")
	ok := func(v any) client.Perform {
		return func(context.Context, client.Call) (any, error) { return v, nil }
	}
	calls := []struct {
		tool string
		args map[string]string
	}{
		{"send_email", map[string]string{"to": "a@x.example"}},
		{"create_ticket", map[string]string{"title": "C"}},
		{"transfer", map[string]string{"amount": "60.00", "currency": "GBP"}},
	}
	for _, c := range calls[:2] {
		if _, err := r.Do(t.Context(), c.tool, c.args, ok(c.tool)); err != nil {
			t.Fatal(err)
		}
	}
	id := l.lose(r, calls[2].tool, calls[2].args)
	_, err := l.decide(l.operator, id, client.VerdictTaken, func(d *client.DecisionRequest) {
		d.Reference, d.Result = "tr_9", json.RawMessage(`{"transfer":"tr_9"}`)
	})
	must(t, err)
	again := l.open("r")
	for i, want := range []string{`"send_email"`, `"create_ticket"`, `{"transfer":"tr_9"}`} {
		out, err := again.Do(t.Context(), calls[i].tool, calls[i].args, unexpected(t))
		if err != nil || string(out.Result) != want || !out.Replayed {
			t.Errorf("%s: %+v %v", calls[i].tool, out, err)
		}
		if by := map[bool]string{true: "person", false: "agent"}[i == 2]; out.DecidedBy != by {
			t.Errorf("%s was decided by %q", calls[i].tool, out.DecidedBy)
		}
		if i == 2 && out.Reference != "tr_9" {
			t.Errorf("reference %q", out.Reference)
		}
	}
}

func TestBC005_APermissionIsUsedUp(t *testing.T) {
	t.Parallel()
	l := start(t)
	args := map[string]string{"amount": "80.00", "currency": "EUR"}
	id := l.lose(l.open("r"), "create_payout", args)
	v, err := l.operator.Effect(t.Context(), id)
	must(t, err)
	if v.Moment == nil {
		t.Fatal("nobody says when the payment can no longer land")
	}
	// An earlier verdict would have to be confirmed: the request may still be under way.
	time.Sleep(time.Until(v.Moment.Add(10 * time.Millisecond)))
	answer, err := l.decide(l.operator, id, client.VerdictNotTaken)
	if err != nil || answer.Early {
		t.Fatalf("%+v %v", answer, err)
	}
	r := l.openWhenReady("r")
	out, err := r.Do(t.Context(), "create_payout", args, func(_ context.Context, c client.Call) (any, error) {
		if c.Attempt != 2 {
			t.Errorf("attempt %d", c.Attempt)
		}
		return map[string]string{"payout": "po_4"}, nil
	})
	if err != nil || out.Replayed {
		t.Fatalf("%+v %v", out, err)
	}
	must(t, r.Release(t.Context()))
	out, err = l.open("r").Do(t.Context(), "create_payout", args, unexpected(t))
	if err != nil || string(out.Result) != `{"payout":"po_4"}` {
		t.Errorf("%+v %v", out, err)
	}
}

// openWhenReady waits until a paused run may go on.
func (l *live) openWhenReady(run string) *client.Run {
	l.t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		v, err := l.agent.Run(l.t.Context(), run, 5*time.Second)
		must(l.t, err)
		if v.State != client.RunPaused {
			return l.open(run)
		}
	}
	l.t.Fatal("the run stays paused")
	return nil
}

func TestBC022_TwoVouchersStayTwo(t *testing.T) {
	t.Parallel()
	l := start(t)
	args := map[string]string{"value": "25.00", "currency": "EUR"}
	n := 0
	buy := func(context.Context, client.Call) (any, error) { n++; return fmt.Sprint("V-", n), nil }
	for start := range 2 {
		r := l.open("run-gift-1")
		for _, want := range []string{`"V-1"`, `"V-2"`} {
			out, err := r.Do(t.Context(), "buy_voucher", args, buy)
			if err != nil || string(out.Result) != want || out.Replayed != (start == 1) {
				t.Errorf("start %d: %+v %v", start+1, out, err)
			}
		}
		if start == 1 {
			if out, err := r.Do(t.Context(), "buy_voucher", args, buy); err != nil || string(out.Result) != `"V-3"` {
				t.Errorf("a third: %+v %v", out, err)
			}
		}
		must(t, r.Release(t.Context()))
	}
}

func TestBC037_AnOutcomeThatComesAfterTwelveMinutesClosesTheCard(t *testing.T) {
	t.Parallel()
	l := start(t)
	r := l.open("r")
	var call client.Call
	_, err := r.Do(t.Context(), "transfer", map[string]string{"to": "x"}, func(_ context.Context, c client.Call) (any, error) {
		call = c
		return nil, errors.New("the record could not be written")
	})
	if !errors.Is(err, client.ErrPaused) {
		t.Fatal(err)
	}
	must(t, r.Release(t.Context()))
	if q := l.queue(); len(q) != 1 {
		t.Fatalf("the queue shows %+v", q)
	}
	got, err := l.agent.Finish(t.Context(), call.EffectID, client.FinishRequest{Fence: 1, Outcome: client.OutcomeTaken, Reference: "tr_70", Result: json.RawMessage(`{"id":"tr_70"}`)})
	if err != nil || got.State != "taken" {
		t.Fatalf("%+v %v", got, err)
	}
	v, err := l.operator.Effect(t.Context(), call.EffectID)
	if err != nil || v.DecidedBy != "late_agent" || len(l.queue()) != 0 {
		t.Errorf("closed by %q, %d in the queue, %v", v.DecidedBy, len(l.queue()), err)
	}
	if out, err := l.open("r").Do(t.Context(), "transfer", map[string]string{"to": "x"}, unexpected(t)); err != nil || out.Reference != "tr_70" {
		t.Errorf("%+v %v", out, err)
	}
}

func TestBC059_EveryDigitSurvives(t *testing.T) {
	t.Parallel()
	l := start(t)
	r := l.open("r")
	keys := map[string]bool{}
	for _, n := range []string{"9007199254740993", "9007199254740992", "3141592653589793239"} {
		args := json.RawMessage(`{"order_id":` + n + `,"amount":"9.00"}`)
		out, err := r.Do(t.Context(), "pay", args, func(context.Context, client.Call) (any, error) {
			return json.RawMessage(`{"transfer":` + n + `,"count":7264515}`), nil // BC-060
		})
		if err != nil || out.Replayed || keys[out.Key] {
			t.Errorf("%s: %+v %v", n, out, err)
		}
		keys[out.Key] = true
		v, err := l.operator.Effect(t.Context(), out.EffectID)
		if err != nil || string(v.Arguments) != string(args) || string(v.Result) != `{"transfer":`+n+`,"count":7264515}` {
			t.Errorf("%s: read back %s and %s, %v", n, v.Arguments, v.Result, err)
		}
	}
}

func TestBC131_ALargeResultClosesTheEffect(t *testing.T) {
	t.Parallel()
	l := start(t)
	receipt := strings.Repeat("scanned receipt ", 6<<20/16)
	r := l.open("r")
	out, err := r.Do(t.Context(), "send_payment", inv9, func(context.Context, client.Call) (any, error) { return receipt, nil })
	if err != nil || !out.Recorded {
		t.Fatalf("%v, recorded %v", err, out.Recorded)
	}
	must(t, r.Release(t.Context()))
	out, err = l.open("r").Do(t.Context(), "send_payment", inv9, unexpected(t))
	if err != nil || !out.ResultOmitted || out.ResultSize != int64(len(receipt)+2) || len(out.ResultDigest) != 64 || out.Result != nil {
		t.Errorf("%v; %d bytes, digest %q, omitted %v", err, out.ResultSize, out.ResultDigest, out.ResultOmitted)
	}
}

func TestBC133_OddCharactersAreStoredAsSent(t *testing.T) {
	t.Parallel()
	l := start(t)
	r := l.open("r")
	keys := map[string]bool{}
	for _, odd := range []string{`"O\u0000K"`, `"cut \ud83d"`, `"whole 😀"`, `"OK"`} {
		out, err := r.Do(t.Context(), "note", json.RawMessage(`{"text":`+odd+`}`), func(context.Context, client.Call) (any, error) {
			return json.RawMessage(odd), nil
		})
		if err != nil || !out.Recorded || keys[out.Key] {
			t.Errorf("%s: %+v %v", odd, out, err)
		}
		keys[out.Key] = true
		v, err := l.operator.Effect(t.Context(), out.EffectID)
		if err != nil || v.State != "taken" || string(v.Result) != odd || string(v.Arguments) != `{"text":`+odd+`}` {
			t.Errorf("%s: %s, read back %s and %s, %v", odd, v.State, v.Arguments, v.Result, err)
		}
	}
}

func TestACheckpointComesBackByteForByte(t *testing.T) {
	t.Parallel()
	l := start(t)
	r := l.open("a/b c%")
	state := json.RawMessage(`{"z":1.0,"a":[9007199254740993,"\ud83d\u0000"]}`)
	must(t, r.Checkpoint(t.Context(), 4, state))
	must(t, r.Release(t.Context()))
	again := l.open("a/b c%")
	var got json.RawMessage
	if ok, err := again.State(&got); !ok || err != nil || string(got) != string(state) || again.Turn() != 4 {
		t.Errorf("turn %d, %s, %v", again.Turn(), got, err)
	}
}

func TestAReadIsNotGuarded(t *testing.T) {
	t.Parallel()
	l := start(t)
	r := l.open("r")
	for i := range 2 {
		out, err := r.Do(t.Context(), "read_balance", map[string]string{"account": "a"}, func(context.Context, client.Call) (any, error) { return i, nil })
		if err != nil || out.Replayed || string(out.Result) != fmt.Sprint(i) {
			t.Errorf("%+v %v", out, err)
		}
	}
	if v, err := l.agent.Run(t.Context(), "r", 0); err != nil || len(v.OpenEffects) != 0 {
		t.Errorf("%+v %v", v.OpenEffects, err)
	}
}
