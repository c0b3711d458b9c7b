package effects

import (
	"encoding/json"
	"fmt"

	"quittance/ledger/logfiles"
	"quittance/reconcile/logfile"
)

// waitingOutcome is an outcome as it is kept until its intent is read.
type waitingOutcome struct {
	Kind      logfile.Kind    `json:"kind"`
	Word      string          `json:"word"`
	Verdict   string          `json:"verdict,omitempty"`
	Time      string          `json:"time,omitempty"`
	Reference string          `json:"reference,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     json.RawMessage `json:"error,omitempty"`
	Stored    Stored          `json:"stored"`
	Key       string          `json:"key,omitempty"`
	Tool      string          `json:"tool,omitempty"`
	Fragment  bool            `json:"fragment,omitempty"`
	Place     string          `json:"place"`
	First     int64           `json:"first"`
	Last      int64           `json:"last"`
	Start     int64           `json:"start"`
	Size      int64           `json:"size"`
}

func (it *logItem) body() (string, error) {
	p, s := it.p, it.span
	b, err := json.Marshal(waitingOutcome{it.rec.Kind, it.rec.Word, it.rec.Verdict, it.rec.Time, it.rec.Reference, raw(p.result.text), raw(p.failure.text),
		p.result.stored, it.rec.Key, it.rec.Tool, it.fragment, it.place, s.First, s.Last, s.Start, s.Size})
	if err != nil {
		return "", fmt.Errorf("couldn't encode an outcome: %w", err)
	}
	return storable(string(b)), nil
}

// waited is an outcome that waited for its intent since an earlier read.
func (l *logReading) waited(x logfiles.Waiting) (*logItem, error) {
	var o waitingOutcome
	if err := json.Unmarshal([]byte(x.Body), &o); err != nil {
		return nil, fmt.Errorf("couldn't read an outcome that waits: %w", err)
	}
	id := logCall{run: x.Run, call: [32]byte(x.Call)}
	it := &logItem{span: &LogSpan{First: o.First, Last: o.Last, Start: o.Start, Size: o.Size}, fragment: o.Fragment, line: -1, run: l.runs[x.Run], id: id,
		row: l.calls[id], waited: x.ID, place: o.Place,
		rec: logfile.Record{Kind: o.Kind, Word: o.Word, Verdict: o.Verdict, Time: o.Time, Reference: o.Reference, Result: o.Result, Error: o.Error, Key: o.Key, Tool: o.Tool}}
	op := l.opOf(it)
	op.Finish.RunID, op.Finish.Key = it.run.RunID, "waited" // found by its call
	it.p = l.e.prepare(op)
	it.p.answer = &Answer{}
	if it.p.refusal != nil {
		return nil, fmt.Errorf("couldn't use an outcome that waits: %w", it.p.refusal)
	}
	it.p.result.stored = o.Stored
	return it, nil
}
