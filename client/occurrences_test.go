package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

func voucher(n *int) Perform {
	return func(context.Context, Call) (any, error) {
		*n++
		return fmt.Sprintf("V-%d", *n), nil
	}
}

func TestBC022_TwoHonestCallsStayTwoAfterARestart(t *testing.T) {
	t.Parallel()
	f, n := newFake(t), 0
	args := map[string]string{"value": "25.00", "currency": "EUR"}
	r := openRun(t, testClient(t, f), "run-gift-1")
	for _, want := range []string{`"V-1"`, `"V-2"`} {
		if out, err := r.Do(t.Context(), "buy_voucher", args, voucher(&n)); err != nil || string(out.Result) != want || out.Replayed {
			t.Fatalf("%+v %v", out, err)
		}
	}
	r = reopen(t, f, r)
	for i, want := range []string{`"V-1"`, `"V-2"`, `"V-3"`} {
		out, err := r.Do(t.Context(), "buy_voucher", args, voucher(&n))
		if err != nil || string(out.Result) != want || out.Replayed != (i < 2) {
			t.Errorf("call %d: %+v %v", i+1, out, err)
		}
	}
}

func TestParallelIdenticalCallsAreSeparate(t *testing.T) {
	t.Parallel()
	f, b := newFake(t), &bank{}
	r := openRun(t, testClient(t, f), "r")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if out, err := r.Do(t.Context(), "pay", invoice, b.pay); err != nil || out.Replayed {
				t.Errorf("%+v %v", out, err)
			}
		})
	}
	all.Wait()
	if b.paid.Load() != 8 || len(f.byID) != 8 {
		t.Errorf("%d payments, %d effects", b.paid.Load(), len(f.byID))
	}
}

func TestBC027_CallsAreRecognisedInAnyOrder(t *testing.T) {
	t.Parallel()
	f, b := newFake(t), &bank{}
	args := func(name string) map[string]string { return map[string]string{"to": name} }
	r := openRun(t, testClient(t, f), "r")
	for _, name := range []string{"A", "B"} {
		if _, err := r.Do(t.Context(), "pay", args(name), b.pay); err != nil {
			t.Fatal(err)
		}
	}
	r = reopen(t, f, r)
	for _, tc := range []struct{ tool, name, result string }{
		{"read", "B", `{"payment":3}`}, {"pay", "B", `{"payment":2}`}, {"pay", "A", `{"payment":1}`}, {"pay", "C", `{"payment":4}`},
	} {
		if out, err := r.Do(t.Context(), tc.tool, args(tc.name), b.pay); err != nil || string(out.Result) != tc.result {
			t.Errorf("%s %s: %s %v", tc.tool, tc.name, out.Result, err)
		}
	}
}

func TestAResumedRunCountsOnFromItsCheckpoint(t *testing.T) {
	t.Parallel()
	f, n := newFake(t), 0
	r := openRun(t, testClient(t, f), "r")
	do := func(r *Run) string {
		out, err := r.Do(t.Context(), "buy", map[string]int{"n": 1}, voucher(&n))
		if err != nil {
			t.Fatal(err)
		}
		return string(out.Result)
	}
	do(r)
	if err := r.Checkpoint(t.Context(), 1, "after the first"); err != nil {
		t.Fatal(err)
	}
	do(r) // came back, and the process died before the next checkpoint
	r = reopen(t, f, r)
	var state string
	if ok, err := r.State(&state); !ok || err != nil || state != "after the first" || r.Turn() != 1 {
		t.Fatalf("%v %v %q %d", ok, err, state, r.Turn())
	}
	if got := do(r); got != `"V-2"` {
		t.Errorf("the second call got %s: without the saved count it would be the first again", got)
	}
	if got := do(r); got != `"V-3"` {
		t.Errorf("the third call got %s", got)
	}
}

func TestAnOccurrenceIsUsedUpOnlyByAnOutcome(t *testing.T) {
	t.Parallel()
	f, b := newFake(t), &bank{}
	r := openRun(t, testClient(t, f), "r")
	lost := func(context.Context, Call) (any, error) { return nil, errors.New("lost") }
	for range 3 { // the first is in doubt, the others meet the pause
		if _, err := r.Do(t.Context(), "pay", invoice, lost); !errors.Is(err, ErrPaused) {
			t.Fatal(err)
		}
	}
	f.decide("interrupted", "taken", `{"payment":"tr_9"}`)
	out, err := r.Do(t.Context(), "pay", invoice, b.pay)
	if err != nil || !out.Replayed || out.EffectID != "e1" || out.DecidedBy != "person" || string(out.Result) != `{"payment":"tr_9"}` {
		t.Errorf("%+v %v", out, err)
	}
	out, err = r.Do(t.Context(), "pay", invoice, b.pay)
	if err != nil || out.Replayed || out.EffectID != "e2" {
		t.Errorf("the next identical call is not a second one: %+v %v", out, err)
	}
}

func TestACallIDTellsARetryFromASecondCall(t *testing.T) {
	t.Parallel()
	f, b := newFake(t), &bank{}
	r := openRun(t, testClient(t, f), "r")
	for _, tc := range []struct {
		id, amount string
		replayed   bool
	}{
		{"toolu_1", "1.00", false},
		{"toolu_1", "1.00", true},  // the framework's retry
		{"toolu_2", "1.00", false}, // a second honest call
		{"toolu_1", "2.00", false}, // a provider that repeats its ids
		{"toolu_2", "1.00", true},
	} {
		out, err := r.Do(t.Context(), "pay", map[string]string{"amount": tc.amount}, b.pay, CallID(tc.id))
		if err != nil || out.Replayed != tc.replayed {
			t.Errorf("%+v: %+v %v", tc, out, err)
		}
	}
}

func TestAKeyOfTheCallersOwnIsAlwaysTheSameCall(t *testing.T) {
	t.Parallel()
	f, b := newFake(t), &bank{}
	r := openRun(t, testClient(t, f), "r")
	for i := range 3 {
		out, err := r.Do(t.Context(), "pay", invoice, b.pay, WithKey("order-7"))
		if err != nil || out.Replayed != (i > 0) {
			t.Errorf("call %d: %+v %v", i, out, err)
		}
	}
}

func TestVolatileFieldsDoNotHideASecondCall(t *testing.T) {
	t.Parallel()
	f, b := newFake(t), &bank{}
	f.volatile = map[string][]string{"pay": {"attempt_id", "sdk.created_at"}}
	r := openRun(t, testClient(t, f), "r")
	args := func(id string) json.RawMessage {
		return json.RawMessage(`{"order":"O-9","attempt_id":"` + id + `","sdk":{"created_at":"` + id + `","name":"web"}}`)
	}
	for i, id := range []string{"x1", "x2"} {
		out, err := r.Do(t.Context(), "pay", args(id), b.pay)
		if err != nil || out.Replayed {
			t.Errorf("call %d is taken for the first: %+v %v", i+1, out, err)
		}
	}
	r = reopen(t, f, r)
	if out, err := r.Do(t.Context(), "pay", args("x3"), b.pay); err != nil || !out.Replayed || out.EffectID != "e1" {
		t.Errorf("a replay with another request time is a new call: %+v %v", out, err)
	}
}

func TestCallDigest(t *testing.T) {
	t.Parallel()
	digest := func(tool, args string) string {
		d, err := CallDigest(tool, json.RawMessage(args), nil)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, same := range [][]string{
		{`{"hours":1.0,"rate":40}`, `{"rate":40.00,"hours":1}`, `{"hours":1e0,"rate":4E1}`, `{"hours":0.1e+1,"rate":400e-1}`},
		{`{"u":100000000000000000000}`, `{"u":1e20}`, `{"u":1E+20}`},
		{`{"z":0}`, `{"z":-0}`, `{"z":0.000}`, `{"z":0e9}`},
		{`{"n":-1.50}`, `{"n":-15e-1}`},
		{`{"s":"A"}`, `{"s":"\u0041"}`},
	} {
		for _, args := range same[1:] {
			if digest("t", args) != digest("t", same[0]) {
				t.Errorf("%s differs from %s", args, same[0])
			}
		}
	}
	seen := map[string]string{}
	for _, args := range []string{
		`{}`, `{"a":null}`, `{"a":"null"}`, `{"a":""}`, `{"a":1}`, `{"a":"1"}`, `{"a":"1.0"}`, `{"a":10}`, `{"a":-1}`, `{"a":0.1}`,
		`{"a":[3,1,2]}`, `{"a":[1,2,3]}`, `{"a":[[1],2,3]}`, `{"a":{"b":1}}`, `{"x":"1","y":"2"}`, `{"x":"1\",\"y\":\"2"}`,
		`{"u":100000000000000000001}`, `{"u":9007199254740993}`, `{"u":9007199254740992}`, `{"a":true}`, `{"a":"true"}`,
	} {
		d := digest("t", args)
		if seen[d] != "" {
			t.Errorf("%s and %s are taken for one call", args, seen[d])
		}
		seen[d] = args
	}
	// Fixed for ever: other clients, and checkpoints that exist, go by it.
	const vector = "daae9f17d9b92e4a80d59dd4c12894630a3b7c8f2e616f38667b90e0078fc20a"
	if got := digest("pay", `{"b":[1.50,null,true],"a":{"<é>":"x\u2028\\\"y"},"n":-1200,"z":0.0}`); got != vector {
		t.Errorf("the digest changed: %s", got)
	}
	if digest("b:c", `{}`) == digest("b", `{}`) {
		t.Error("the tool is not in it")
	}
	if _, err := CallDigest("t", json.RawMessage(`{"a":1e`+strings.Repeat("9", 40)+`}`), nil); err != nil {
		t.Errorf("an exponent beyond any limit: %v", err)
	}
}
