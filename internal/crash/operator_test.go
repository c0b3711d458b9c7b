package crash

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"quittance/client"
	"quittance/cmd/quittance/demo/bank"
)

// decide is a person who knows nothing but the queue and the bank's look-up: whatever
// of the run waits is decided by what the bank shows, a "not taken" only once the last
// attempt can no longer land. It returns when the run may go on.
func (w *work) decide() {
	w.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		page, err := w.operator.Queue(w.t.Context(), client.QueueFilter{RunID: w.job.Run})
		must(w.t, err)
		for _, row := range page.Items {
			must(w.t, w.judge(row))
		}
		v, err := w.agent.Run(w.t.Context(), w.job.Run, time.Second)
		must(w.t, err)
		if v.State != client.RunPaused {
			return
		}
	}
	w.t.Fatalf("%s stays paused", w.job.Run)
}

func (w *work) judge(row client.QueueItem) error {
	d := client.DecisionRequest{DecisionID: row.EffectID + "-" + row.State, Version: row.Version, Verdict: client.VerdictAcknowledge, Note: "asked the bank", Recovery: true}
	if !row.Contradicted {
		x, err := w.operator.Effect(w.t.Context(), row.EffectID)
		if err != nil {
			return err
		}
		// Look, and only when nothing can come any more believe that there is nothing.
		if d, err = w.look(x); err != nil {
			return err
		}
		if d.Verdict == client.VerdictNotTaken && x.Moment != nil && time.Until(*x.Moment) > -margin {
			time.Sleep(time.Until(*x.Moment) + margin)
			if d, err = w.look(x); err != nil {
				return err
			}
		}
	}
	_, err := w.operator.Decide(w.t.Context(), row.EffectID, d)
	if errors.Is(err, client.ErrStale) || errors.Is(err, client.ErrDecided) {
		return nil // it moved meanwhile: look again
	}
	return err
}

// margin is past the moment, whatever the clocks' last digits say.
const margin = 20 * time.Millisecond

func (w *work) look(x client.EffectView) (client.DecisionRequest, error) {
	_, invoice, _ := strings.Cut(x.BusinessKey, "/")
	found, err := bank.Find(w.t.Context(), w.bankAt[w.keys], invoice)
	// One decision for each time that the question is asked.
	id := fmt.Sprint(x.EffectID, "-", x.State, "-", len(x.Attempts))
	d := client.DecisionRequest{DecisionID: id, Version: x.Version, Verdict: client.VerdictNotTaken, Note: "the bank shows nothing"}
	if len(found) > 0 {
		d.Verdict, d.Note, d.Reference = client.VerdictTaken, "the bank shows it", found[0].ID
		d.Result, _ = json.Marshal(receipt{PaymentID: found[0].ID})
	}
	return d, err
}
