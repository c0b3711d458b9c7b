package logfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Entry is a line as Quittance writes it: version 1 of the format, members in this
// order.
type Entry struct {
	Version    int             `json:"v"`
	Type       Kind            `json:"type"`
	ID         string          `json:"id,omitempty"`
	At         string          `json:"at,omitempty"`
	Run        string          `json:"run,omitempty"`
	Key        string          `json:"key,omitempty"`
	Tool       string          `json:"tool,omitempty"`
	Arguments  json.RawMessage `json:"arguments,omitempty"`
	Occurrence int             `json:"occurrence,omitempty"`
	Attempt    int             `json:"attempt,omitempty"`
	Verdict    string          `json:"verdict,omitempty"`
	By         string          `json:"by,omitempty"`
	Reference  string          `json:"reference,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	Error      json.RawMessage `json:"error,omitempty"`
}

// Line encodes an entry, its end included.
func (e Entry) Line() ([]byte, error) {
	e.Version = 1
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return nil, fmt.Errorf("couldn't encode a line: %w", err)
	}
	return b.Bytes(), nil
}

// Stamp is a time as lines have it.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }
