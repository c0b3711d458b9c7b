package api

import (
	"strings"
	"testing"
	"time"

	"quittance/client"
	"quittance/reconcile/effects"
)

func TestBC017_AListOfDecisionsIsTakenWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	one := func(effect, id, verdict string) string {
		named := ""
		if effect != "" {
			named = `"effect_id":"` + effect + `",`
		}
		return `{` + named + `"decision_id":"` + id + `","version":3,"verdict":"` + verdict + `","note":"n"}`
	}
	s := &stub{decisions: []effects.DecideResult{
		{Answer: &effects.DecideAnswer{EffectID: "O-2", State: "cleared"}},
		{Answer: &effects.DecideAnswer{EffectID: "O-1", State: "taken"}},
	}}
	url := serve(t, s)
	for name, list := range map[string]string{
		"no effect":          one("O-2", "d1", "not_taken") + "," + one("", "d2", "taken"),
		"one effect twice":   one("O-2", "d1", "not_taken") + "," + one("O-2", "d2", "taken"),
		"one decision twice": one("O-2", "d1", "not_taken") + "," + one("O-1", "d1", "taken"),
		"unknown verdict":    one("O-2", "d1", "not_taken") + "," + one("O-1", "d2", "maybe"),
		"nothing":            "",
	} {
		got := call(t, "operator", "POST", url+"/v1/decisions", `{"decisions":[`+list+`]}`)
		if got.status != 422 || !strings.Contains(got.body, `"/decisions`) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if len(s.list) != 0 {
		t.Fatalf("%d decisions reached the engine", len(s.list))
	}

	got := call(t, "operator", "POST", url+"/v1/decisions",
		`{"decisions":[`+one("O-2", "d1", "not_taken")+","+one("O-1", "d2", "taken")+`]}`)
	if got.status != 200 || len(s.list) != 2 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	for i, want := range []struct {
		effect  string
		verdict effects.Verdict
	}{{"O-2", effects.VerdictNotTaken}, {"O-1", effects.VerdictTaken}} {
		if s.list[i].EffectID != want.effect || s.list[i].Verdict != want.verdict {
			t.Errorf("decision %d landed on %s as %s", i, s.list[i].EffectID, s.list[i].Verdict)
		}
	}
}

func TestDecisionAnswers(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 6, 11, 3, 48, 20, 0, time.UTC)
	for _, tc := range []struct {
		name   string
		result effects.DecideResult
		status int
		word   string
	}{
		{"decided", effects.DecideResult{Answer: &effects.DecideAnswer{EffectID: "e", State: "taken"}}, 200, client.DecisionMade},
		{"concurring", effects.DecideResult{Answer: &effects.DecideAnswer{EffectID: "e", Concurring: true}}, 200, client.DecisionConcurring},
		{"confirmed", effects.DecideResult{Answer: &effects.DecideAnswer{EffectID: "e", Confirmed: true}}, 200, client.DecisionConfirmed},
		{"second person", effects.DecideResult{Answer: &effects.DecideAnswer{EffectID: "e", Waits: true}}, 202, client.DecisionSecondPerson},
		{"decided by another", effects.DecideResult{Refusal: &effects.Refusal{Code: effects.CodeDecided, Decided: &effects.Decided{
			By: "person", Person: "Petra", At: at, Verdict: "taken", Note: "saw tr_9"}}}, 409, client.CodeDecided},
		{"moved on", effects.DecideResult{Refusal: &effects.Refusal{Code: effects.CodeStale, Version: 5}}, 409, client.CodeStale},
		{"no note", effects.DecideResult{Refusal: &effects.Refusal{Code: effects.CodeNoteMissing}}, 422, client.CodeNoteMissing},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := &stub{decisions: []effects.DecideResult{tc.result}}
			got := call(t, "operator", "POST", serve(t, s)+"/v1/effects/e/decision", `{"decision_id":"d","version":4,"verdict":"taken","note":"n"}`)
			if got.status != tc.status || !strings.Contains(got.body, `"`+tc.word+`"`) {
				t.Errorf("%d %s", got.status, got.body)
			}
			if tc.status == 409 && tc.word == client.CodeDecided {
				var p client.Problem
				got.into(t, &p)
				if d := p.Decided; d == nil || d.Who != "Petra" || !d.When.Equal(at) || d.Verdict != "taken" || d.Why != "saw tr_9" {
					t.Errorf("who, when and why are missing: %s", got.body)
				}
			}
			if tc.word == client.CodeStale && !strings.Contains(got.body, `"version":5`) {
				t.Errorf("the current version is missing: %s", got.body)
			}
		})
	}
}

func TestLookUpAsksNow(t *testing.T) {
	t.Parallel()
	effect := effects.EffectView{EffectID: "e", Tool: "pay", State: "interrupted", Version: 2}
	for _, underWay := range []bool{false, true} {
		seen := &trail{}
		url := serveBehind(t, &stub{effect: effect, underWay: underWay}, seen)
		got := call(t, "operator", "POST", url+"/v1/effects/e/lookup", "")
		if len(seen.rows) != 1 || seen.rows[0].Action != "effect.look_up" || seen.rows[0].Subject != "effect:e" || seen.rows[0].Actor != "Olga" || seen.rows[0].Via != "api" || (seen.rows[0].Note != "") != underWay {
			t.Errorf("the trail says %+v", seen.rows)
		}
		want := map[bool]string{false: `"look_up":"due"`, true: `"look_up":"under_way"`}[underWay]
		if got.status != 200 || !strings.Contains(got.body, want) || !strings.Contains(got.body, `"version":2`) {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	for code, want := range map[effects.Code]int{effects.CodeNotFound: 404, effects.CodeNoLookup: 501} {
		url := serve(t, &stub{refusal: &effects.Refusal{Code: code}})
		if got := call(t, "operator", "POST", url+"/v1/effects/e/lookup", ""); got.status != want {
			t.Errorf("%s: %d", code, got.status)
		}
	}
	if got := call(t, "viewer", "POST", serve(t, &stub{effect: effect})+"/v1/effects/e/lookup", ""); got.status != 403 {
		t.Errorf("a viewer: %d", got.status)
	}
}
