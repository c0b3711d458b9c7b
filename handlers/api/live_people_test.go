package api_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"quittance/client"
)

func TestBC017_VerdictsLandOnTheirOwnEffects(t *testing.T) {
	t.Parallel()
	l := start(t)
	first := l.lose(l.open("r1"), "refund", map[string]string{"order": "O-1", "amount": "30.00"})
	second := l.lose(l.open("r2"), "refund", map[string]string{"order": "O-2", "amount": "300.00"})
	version := func(id string) int64 {
		v, err := l.operator.Effect(t.Context(), id)
		must(t, err)
		return v.Version
	}
	verdict := func(id, verdict, decision string) client.DecisionRequest {
		return client.DecisionRequest{EffectID: id, DecisionID: decision, Version: version(first), Verdict: verdict, Note: "n"}
	}
	for name, list := range map[string][]client.DecisionRequest{
		"without an effect": {verdict(second, "not_taken", "d1"), verdict("", "taken", "d2")},
		"one effect twice":  {verdict(second, "not_taken", "d3"), verdict(second, "taken", "d4")},
	} {
		before := version(first) + version(second)
		_, err := l.operator.DecideAll(t.Context(), list...)
		if p, ok := errors.AsType[*client.Problem](err); !ok || p.Status != 422 {
			t.Errorf("%s: %v", name, err)
		}
		if version(first)+version(second) != before || len(l.queue()) != 2 {
			t.Errorf("%s: something changed", name)
		}
	}
	answers, err := l.operator.DecideAll(t.Context(), verdict(second, "not_taken", "d5"), verdict(first, "taken", "d6"))
	must(t, err)
	for i, want := range []struct{ id, state string }{{second, "cleared"}, {first, "taken"}} {
		if a := answers[i]; a.Status != 200 || a.EffectID != want.id || a.Decision.State != want.state {
			t.Errorf("%+v %+v", a, a.Problem)
		}
	}
}

func TestBC018_ADecidedEffectOfAClosedRunStaysDecided(t *testing.T) {
	t.Parallel()
	l := start(t)
	args := map[string]string{"order": "O-5"}
	id := l.lose(l.open("r"), "refund", args)
	_, err := l.decide(l.operator, id, client.VerdictTaken)
	must(t, err)
	r := l.openWhenReady("r")
	if _, err := r.Do(t.Context(), "refund", args, unexpected(t)); err != nil {
		t.Fatal(err)
	}
	must(t, r.Close(t.Context(), client.RunFinished))
	_, err = l.decide(l.second, id, client.VerdictNotTaken)
	p, ok := errors.AsType[*client.Problem](err)
	if !ok || p.Status != 409 || p.Decided == nil || p.Decided.Who != "Petra" || p.Decided.When.IsZero() {
		t.Errorf("got %+v, %v", p, err)
	}
	if v, err := l.operator.Effect(t.Context(), id); err != nil || v.State != "taken" {
		t.Errorf("now %s, %v", v.State, err)
	}
}

func TestBC103_TheSameDecisionTwiceIsOne(t *testing.T) {
	t.Parallel()
	l := start(t)
	id := l.lose(l.open("r"), "refund", map[string]string{"order": "O-20"})
	v, err := l.operator.Effect(t.Context(), id)
	must(t, err)
	d := client.DecisionRequest{DecisionID: "click", Version: v.Version, Verdict: client.VerdictTaken, Note: "n"}
	type result struct {
		a   client.DecisionAnswer
		err error
	}
	results := make(chan result, 4)
	for range 4 {
		go func() {
			a, err := l.operator.Decide(t.Context(), id, d)
			results <- result{a, err}
		}()
	}
	for range 4 {
		if r := <-results; r.err != nil || r.a.State != "taken" {
			t.Errorf("%+v %v", r.a, r.err)
		}
	}
	if v, err := l.operator.Effect(t.Context(), id); err != nil || len(v.Decisions) != 1 {
		t.Errorf("%d decisions are on record, %v", len(v.Decisions), err)
	}
}

func TestBC104_OneOfTwoVerdictsWins(t *testing.T) {
	t.Parallel()
	l := start(t)
	id := l.lose(l.open("r"), "refund", map[string]string{"order": "O-21"})
	v, err := l.operator.Effect(t.Context(), id)
	must(t, err)
	errs := make(chan error, 2)
	for by, verdict := range map[*client.Client]string{l.operator: client.VerdictTaken, l.second: client.VerdictNotTaken} {
		go func() {
			_, err := by.Decide(t.Context(), id, client.DecisionRequest{Version: v.Version, Verdict: verdict, Note: "n"})
			errs <- err
		}()
	}
	won := 0
	for range 2 {
		err := <-errs
		p, ok := errors.AsType[*client.Problem](err)
		switch {
		case err == nil:
			won++
		case ok && p.Code == client.CodeDecided && p.Decided != nil && p.Decided.Who != "" && p.Decided.Verdict != "":
		default:
			t.Errorf("the loser is told %+v, %v", p, err)
		}
	}
	if won != 1 {
		t.Errorf("%d won", won)
	}
	if v, _ := l.operator.Effect(t.Context(), id); len(v.Decisions) != 1 {
		t.Errorf("%d decisions are on record", len(v.Decisions))
	}
}

func TestBC135_PagesDoNotShiftUnderDecisions(t *testing.T) {
	t.Parallel()
	l := start(t)
	for i := range 25 {
		l.lose(l.open(fmt.Sprint("run-", i)), "refund", map[string]int{"n": i})
	}
	seen := map[string]int{}
	cursor := ""
	for page := 1; ; page++ {
		got, err := l.operator.Queue(t.Context(), client.QueueFilter{Limit: 10, Cursor: cursor})
		must(t, err)
		for _, item := range got.Items {
			seen[item.EffectID]++
			if page == 1 {
				_, err := l.decide(l.operator, item.EffectID, client.VerdictTaken)
				must(t, err)
			}
		}
		if cursor = got.NextCursor; cursor == "" {
			break
		}
	}
	if len(seen) != 25 {
		t.Errorf("%d of 25 were seen", len(seen))
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s was seen %d times", id, n)
		}
	}
}

func TestTheQueueSaysWhichFilterIsWrong(t *testing.T) {
	t.Parallel()
	l := start(t)
	for query, pointer := range map[string]string{
		"limit=201": "?limit", "limit=0": "?limit", "limit=x": "?limit", "state=open": "?state", "cursor=x": "?cursor", "tol=x": "?tol",
	} {
		status, body := l.send("GET", operatorToken, "/v1/queue?"+query, "")
		if status != 422 || !strings.Contains(body, `"pointer":"`+pointer+`"`) {
			t.Errorf("%s: %d %s", query, status, body)
		}
	}
	for _, query := range []string{"limit=200", "limit=1", "state=confirm", "state="} {
		if status, body := l.send("GET", operatorToken, "/v1/queue?"+query, ""); status != 200 {
			t.Errorf("%s: %d %s", query, status, body)
		}
	}
}

func TestEvidenceAndUndo(t *testing.T) {
	t.Parallel()
	l := start(t)
	id := l.lose(l.open("r"), "refund", map[string]string{"order": "O-30"})
	changed, err := l.operator.AddEvidence(t.Context(), id, client.EvidenceRequest{Seen: "nothing in the portal yet", Note: "looked at noon"})
	if err != nil || changed.State != "interrupted" {
		t.Errorf("%+v %v", changed, err)
	}
	if _, err := l.operator.AddEvidence(t.Context(), id, client.EvidenceRequest{Note: "looked"}); problemOf(err) == nil || problemOf(err).Status != 422 {
		t.Errorf("evidence of nothing seen: %v", err)
	}
	_, err = l.decide(l.operator, id, client.VerdictTaken)
	must(t, err)
	changed, err = l.second.Undo(t.Context(), id, client.UndoRequest{Note: "wrong invoice"})
	if err != nil || changed.State != "interrupted" {
		t.Errorf("%+v %v", changed, err)
	}
	v, err := l.operator.Effect(t.Context(), id)
	if err != nil || v.State != "interrupted" || len(v.Decisions) != 2 {
		t.Errorf("%s with %d acts, %v", v.State, len(v.Decisions), err)
	}
	if _, err := l.operator.LookUp(t.Context(), id); err == nil {
		t.Error("a look-up was made by a tool that has none")
	} else if p, ok := errors.AsType[*client.Problem](err); !ok || p.Code != client.CodeNoLookup {
		t.Errorf("got %v", err)
	}
}
