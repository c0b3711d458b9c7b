package crash

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"quittance/client"
)

// TestAKilledFollowerWritesEachDecisionOnce kills `quittance log follow` at random
// moments while the agent of the file writes and a person decides: every line counts
// once, every decision is in the file once, and the agent goes on by it.
func TestAKilledFollowerWritesEachDecisionOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{deadline: time.Second})
	path := w.path("effects.jsonl")
	must(t, os.WriteFile(path, nil, 0o600))
	rnd := rand.New(rand.NewPCG(3, 4))
	write := func(text string) {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		must(t, err)
		_, err = f.WriteString(text)
		must(t, err)
		must(t, f.Close())
	}
	follow := func() *process {
		return start(t, "follow", w.env, program, "log", "follow", path, "--account", "default", "--data", w.data)
	}
	p := follow()
	crash := func() {
		time.Sleep(time.Duration(rnd.IntN(1500)) * time.Millisecond)
		p.kill()
		p = follow()
	}
	const runs = 6
	for i := range runs {
		run := fmt.Sprintf("file-%d", i)
		line := fmt.Sprintf(`{"type":"intent","run":%q,"key":"K","tool":%q,"arguments":{"vendor":"v","invoice":%q,"amount":"100","currency":"USD"}}`, run, ignores, run)
		half := rnd.IntN(len(line))
		write(line[:half]) // the follower may look in the middle of a line
		time.Sleep(time.Duration(rnd.IntN(300)) * time.Millisecond)
		p.kill()
		write(line[half:] + "\n")
		p = follow()
		crash()
		waiting := (&work{world: w, t: t, job: job{Run: run}}).interrupted()
		verdict := []string{client.VerdictTaken, client.VerdictNotTaken}[i%2]
		x, err := w.operator.Effect(t.Context(), waiting.EffectID)
		must(t, err)
		if x.Moment != nil {
			time.Sleep(time.Until(*x.Moment) + margin)
		}
		_, err = w.operator.Decide(t.Context(), x.EffectID, client.DecisionRequest{DecisionID: run, Version: waiting.Version, Verdict: verdict, Note: "asked the bank"})
		must(t, err)
		crash()
		w.resolved(path, run)
		if verdict == client.VerdictNotTaken { // the agent goes on
			write(line + "\n" + fmt.Sprintf(`{"type":"completed","run":%q,"key":"K","reference":"po_%d"}`, run, i) + "\n")
			crash()
		}
	}
	crash()
	for i := range runs {
		run := fmt.Sprintf("file-%d", i)
		for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			v, err := w.agent.Run(t.Context(), run, 0)
			must(t, err)
			if v.State == client.RunReady && len(v.OpenEffects) == 0 {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s is %s: %+v", run, v.State, v)
			}
		}
	}
	p.kill()
	text, err := os.ReadFile(path)
	must(t, err)
	for i := range runs {
		if n := resolvedIn(string(text), fmt.Sprintf("file-%d", i)); n != 1 {
			t.Errorf("%d decisions of run %d are in the file:\n%s", n, i, text)
		}
	}
}

func resolvedIn(text, run string) (n int) {
	for line := range strings.Lines(text) {
		var e struct{ Type, Run, ID string }
		if json.Unmarshal([]byte(line), &e) == nil && e.Type == "resolved" && e.Run == run && e.ID != "" {
			n++
		}
	}
	return n
}

// resolved waits until the run's decision is in the file.
func (w *world) resolved(path, run string) {
	w.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		text, err := os.ReadFile(path)
		must(w.t, err)
		if resolvedIn(string(text), run) > 0 {
			return
		}
	}
	w.t.Fatalf("the decision of %s does not come", run)
}
