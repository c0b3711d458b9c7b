package effects

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"quittance/ledger/lookups"
	"quittance/reconcile/lookup"
)

// denied refuses "not taken" and "stop" while the last look showed a record that may be
// this effect and that the verdict does not name as somebody else's. Nobody overlooks a
// finding: it is denied by its name.
func (v *verdict) denied(ctx context.Context) (*Refusal, error) {
	if v.Verdict != VerdictNotTaken && v.Verdict != VerdictStop {
		return nil, nil
	}
	text, err := lookups.LastShown(ctx, v.tx, v.x.ID)
	if err != nil || text == "" {
		return nil, err
	}
	var showed Showed
	if err := json.Unmarshal([]byte(text), &showed); err != nil {
		return nil, fmt.Errorf("couldn't read what a look showed: %w", err)
	}
	var names []string
	for _, h := range (lookup.Answer{Hits: showed.Records}).Stopping() {
		if !slices.Contains(v.NotOurs, h.Name()) {
			names = append(names, h.Name())
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	r := v.x.refusal(CodeConflict, "The downstream shows "+strings.Join(names, ", ")+
		", which may be this effect. Name it under not_ours if it is somebody else's, or say that it was taken.")
	r.Reason, r.Pointer = "found", "/not_ours"
	return r, nil
}
