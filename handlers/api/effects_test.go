package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quittance/client"
	"quittance/reconcile/effects"
)

func TestArgumentsAndResultsArriveByteForByte(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{"units": 100000000000000000000, "u":1e20}`,
		`{"order_id":9007199254740993,"amount":"9.00"}`,
		`{"memo":"\u0000","cut":"\ud83d","whole":"😀"}`,
		`{"b":1,"a":{"z":[3,1,2]}}`,
	} {
		s := &stub{}
		url := serve(t, s)
		call(t, "agent", "POST", url+"/v1/effects", `{"run_id":"r","lease":"l","attempt_id":"a","tool":"t","arguments":`+raw+`}`)
		call(t, "agent", "POST", url+"/v1/effects/e1/finish", `{"fence":1,"outcome":"taken","result":`+raw+`,"error":`+raw+`}`)
		if len(s.ops) != 2 {
			t.Fatalf("%s: %d operations reached the engine", raw, len(s.ops))
		}
		if got := string(s.ops[0].Begin.Arguments); got != raw {
			t.Errorf("arguments: sent %s, got %s", raw, got)
		}
		if got := string(s.ops[1].Finish.Result); got != raw {
			t.Errorf("result: sent %s, got %s", raw, got)
		}
		if got := string(s.ops[1].Finish.Error); got != raw {
			t.Errorf("error: sent %s, got %s", raw, got)
		}
	}
}

func TestBeginPassesEverythingOn(t *testing.T) {
	t.Parallel()
	s := &stub{}
	got := call(t, "agent", "POST", serve(t, s)+"/v1/effects", `{"run_id":"r","lease":"l","attempt_id":"a","tool":"t",
		"arguments":{"x":1},"occurrence":2,"key":"k","call_id":"call_0","client_time":"2026-06-11T03:48:20.5+02:00",
		"context":{"labels":{"team":"ap"},"why":"due"},"log_position":"p"}`)
	if got.status != 201 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	b := *s.ops[0].Begin
	if string(b.Context) != `{"labels":{"team":"ap"},"why":"due"}` {
		t.Errorf("context %s", b.Context)
	}
	b.Context, b.Arguments = nil, nil
	want := effects.Begin{Account: 7, RunID: "r", Lease: "l", AttemptID: "a", Tool: "t", Occurrence: 2, Key: "k",
		CallID: "call_0", ClientTime: "2026-06-11T01:48:20.5Z", LogPosition: "p"}
	if fmt.Sprint(b) != fmt.Sprint(want) {
		t.Errorf("got  %+v\nwant %+v", b, want)
	}
}

func TestBeginAnswers(t *testing.T) {
	t.Parallel()
	deadline := time.Date(2026, 6, 11, 3, 48, 20, 123_456_789, time.FixedZone("", 7200))
	for _, tc := range []struct {
		name   string
		answer effects.BeginAnswer
		status int
		want   string
	}{
		{"proceed", effects.BeginAnswer{Do: "proceed", EffectID: "e", Key: "k", Attempt: 1, Fence: 1, Deadline: deadline,
			PerformWithin: 180 * time.Second, VendorKey: "v", LogPosition: "p"}, 201,
			`{"do":"proceed","replayed":false,"effect_id":"e","key":"k","attempt":1,"fence":1,"deadline":"2026-06-11T01:48:20.123456Z","perform_within_ms":180000,"vendor_key":"v","log_position":"p"}`},
		{"replay", effects.BeginAnswer{Do: "replay", EffectID: "e", Key: "k", Outcome: "taken", Result: []byte(`{"transfer":820311904417712129,"s":"<\ud83d\u0000>"}`),
			Reference: "tr_9", DecidedBy: "person"}, 200,
			`{"do":"replay","replayed":true,"effect_id":"e","key":"k","outcome":"taken","result":{"transfer":820311904417712129,"s":"<\ud83d\u0000>"},"reference":"tr_9","decided_by":"person"}`},
		{"pass", effects.BeginAnswer{Do: "pass"}, 200, `{"do":"pass","replayed":false}`},
		{"replay of a failure", effects.BeginAnswer{Do: "replay", EffectID: "e", Key: "k", Outcome: "failed", Error: []byte(`"IBAN checksum"`), DecidedBy: "agent"}, 200,
			`{"do":"replay","replayed":true,"effect_id":"e","key":"k","outcome":"failed","error":"IBAN checksum","decided_by":"agent"}`},
		{"replay of a cut result", effects.BeginAnswer{Do: "replay", EffectID: "e", Key: "k", Outcome: "taken", Omitted: true, Size: 6 << 20, Digest: "d", DecidedBy: "agent"}, 200,
			`{"do":"replay","replayed":true,"effect_id":"e","key":"k","outcome":"taken","result_omitted":true,"result_size":6291456,"result_digest":"d","decided_by":"agent"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := &stub{answers: []effects.Answer{{Begin: &tc.answer}}}
			got := call(t, "agent", "POST", serve(t, s)+"/v1/effects", `{"run_id":"r","lease":"l","attempt_id":"a","tool":"t","arguments":{}}`)
			if got.status != tc.status || strings.TrimSpace(got.body) != tc.want {
				t.Errorf("%d %s\nwant %d %s", got.status, got.body, tc.status, tc.want)
			}
		})
	}
}

func TestBC024_AFinishWithOnlyACallIDIsAmbiguous(t *testing.T) {
	t.Parallel()
	s := &stub{}
	url := serve(t, s)
	for _, body := range []string{
		`{"outcome":"taken","call_id":"call_0"}`,
		`{"outcome":"taken","call_id":"call_0","run_id":"r"}`,
		`{"outcome":"taken","call_id":"call_0","run_id":"r","tool":"send_email"}`,
		`{"outcome":"taken","key":"k"}`,
	} {
		got := call(t, "agent", "POST", url+"/v1/effects/finish", body)
		var p client.Problem
		got.into(t, &p)
		if got.status != 422 || p.Code != client.CodeAmbiguous {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
		in := strings.Replace(`{"ops":[{"finish":BODY}]}`, "BODY", body, 1)
		if got := call(t, "agent", "POST", url+"/v1/effects/batch", in); got.status != 422 || !strings.Contains(got.body, client.CodeAmbiguous) {
			t.Errorf("in a batch, %s: %d %s", body, got.status, got.body)
		}
	}
	if len(s.ops) != 0 {
		t.Errorf("%d guesses reached the engine", len(s.ops))
	}
	for _, body := range []string{
		`{"outcome":"taken","call_id":"call_0","run_id":"r","key":"k"}`,
		`{"outcome":"taken","call_id":"call_0","run_id":"r","tool":"send_email","arguments":{},"occurrence":1}`,
	} {
		if got := call(t, "agent", "POST", url+"/v1/effects/finish", body); got.status != 200 {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	if len(s.ops) != 2 || s.ops[0].Finish.Key != "k" || s.ops[1].Finish.Tool != "send_email" {
		t.Errorf("the engine was asked %+v", s.ops)
	}
}

func TestAFinishThatNamesTwoEffectsIsRefused(t *testing.T) {
	t.Parallel()
	s := &stub{}
	url := serve(t, s)
	for path, body := range map[string]string{
		"/v1/effects/e1/finish": `{"outcome":"taken","run_id":"r","key":"k"}`,
		"/v1/effects/finish":    `{"outcome":"taken","run_id":"r","key":"k","tool":"t","arguments":{}}`,
		"/v1/effects/batch":     `{"ops":[{"effect_id":"e1","finish":{"outcome":"taken","key":"k"}}]}`,
	} {
		if got := call(t, "agent", "POST", url+path, body); got.status != 422 {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if len(s.ops) != 0 {
		t.Errorf("%d reached the engine", len(s.ops))
	}
}

func TestBatchAnswersEachInOrder(t *testing.T) {
	t.Parallel()
	s := &stub{answers: []effects.Answer{
		{Begin: &effects.BeginAnswer{Do: "proceed", EffectID: "e1"}},
		{Refusal: &effects.Refusal{Code: effects.CodeRunPaused, RunID: "r", WaitingFor: []effects.Waiting{{EffectID: "e0", Reason: "held"}}}},
		{Finish: &effects.FinishAnswer{State: ""}},
		{Begin: &effects.BeginAnswer{Do: "replay", EffectID: "e4", Outcome: "taken"}},
	}}
	url := serve(t, s)
	begin := `{"begin":{"run_id":"r","lease":"l","attempt_id":"a","tool":"t","arguments":{}}}`
	finish := `{"finish":{"run_id":"r","key":"k","outcome":"taken"}}`
	got := call(t, "agent", "POST", url+"/v1/effects/batch", `{"ops":[`+strings.Join([]string{begin, begin, finish, begin}, ",")+`]}`)
	var out client.BatchAnswers
	got.into(t, &out)
	var statuses []int
	for _, a := range out.Answers {
		statuses = append(statuses, a.Status)
	}
	if fmt.Sprint(statuses) != "[201 409 200 200]" {
		t.Errorf("%v: %s", statuses, got.body)
	}
	if p := out.Answers[1].Problem; p == nil || p.Code != client.CodeRunPaused || p.WaitingFor[0].URL != "https://desk.example/effects/e0" {
		t.Errorf("%+v", p)
	}
	if f := out.Answers[2].Finish; f == nil || !f.WithoutIntent {
		t.Errorf("a finish without an intent is not told apart: %+v", f)
	}

	for _, body := range []string{
		`{"ops":[]}`, `{"ops":[{}]}`, `{"ops":[{"effect_id":"e"}]}`,
		`{"ops":[{"begin":{"run_id":"r","lease":"l","attempt_id":"a","tool":"t"},"finish":{"outcome":"taken"}}]}`,
		`{"ops":[` + strings.TrimSuffix(strings.Repeat(begin+",", 501), ",") + `]}`,
	} {
		asked := len(s.ops)
		if got := call(t, "agent", "POST", url+"/v1/effects/batch", body); got.status != 422 {
			t.Errorf("%.60s: %d", body, got.status)
		}
		if len(s.ops) != asked {
			t.Errorf("%.60s: a part of it was done", body)
		}
	}
}
