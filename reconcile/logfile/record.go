package logfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"quittance/reconcile/canon"
)

// Kind is what a line says.
type Kind string

const (
	Intent    Kind = "intent"    // the agent is about to perform it
	Completed Kind = "completed" // it took effect
	Failed    Kind = "failed"    // the tool refused it for sure
	Unknown   Kind = "unknown"   // it ended, and the agent does not know how
	Resolved  Kind = "resolved"  // somebody found out
	Closed    Kind = "closed"    // the run has ended
)

// Outcomes of a Closed line.
var outcomes = map[string]string{"": "finished", "finished": "finished", "completed": "finished", "failed": "failed", "cancelled": "cancelled"}

// Verdicts of a Resolved line; any other is "".
const (
	Taken    = "taken"
	NotTaken = "not_taken"
	Stop     = "stop"
)

// Record is a line that could be read. Of the members that name the effect at least one
// of Key and Tool is set, but for a Closed line, which names none.
type Record struct {
	Kind       Kind
	Word       string // as the line has it
	ID         string // of a resolved line that Quittance wrote
	Run        string // "" for the file's own
	Key        string // as the agent gave it; "" where tool and arguments name the effect
	Tool       string
	Arguments  []byte // a JSON object, or nil
	Occurrence int    // 0: not said
	CallID     string
	Time       string // as given: a claim
	Result     []byte // JSON, or nil
	Error      []byte // JSON, or nil
	Reference  string
	Verdict    string // of a resolved line
	Outcome    string // of a closed line: finished, failed or cancelled
	Foreign    []byte // the members that nobody here knows, as a JSON object; nil without any
}

// words are how agents say what a line is.
var words = map[string]Kind{
	"intent": Intent, "intended": Intent, "started": Intent, "start": Intent, "begin": Intent, "begun": Intent, "pending": Intent, "in_flight": Intent,
	"completed": Completed, "completion": Completed, "complete": Completed, "succeeded": Completed, "success": Completed, "done": Completed, "taken": Completed, "ok": Completed,
	"failed": Failed, "failure": Failed, "refused": Failed,
	"unknown": Unknown, "error": Unknown, "errored": Unknown, "timeout": Unknown, "timed_out": Unknown, "interrupted": Unknown, "cancelled": Unknown, "aborted": Unknown,
	"resolved": Resolved, "resolution": Resolved,
	"closed": Closed, "run_closed": Closed, "run_finished": Closed,
}

var verdicts = map[string]string{
	"taken": Taken, "completed": Taken, "succeeded": Taken, "success": Taken, "done": Taken,
	"not_taken": NotTaken, "retry": NotTaken, "run_again": NotTaken, "cleared": NotTaken, "failed": NotTaken,
	"stop": Stop, "cancelled": Stop, "abandoned": Stop, "skip": Stop,
}

// The names under which members are looked for, the documented one first.
var (
	kindNames       = []string{"type", "event", "status", "state"}
	keyNames        = []string{"key", "effect_key", "idempotency_key"}
	runNames        = []string{"run", "run_id"}
	toolNames       = []string{"tool", "tool_name"}
	argumentNames   = []string{"arguments", "args", "input"}
	occurrenceNames = []string{"occurrence"}
	timeNames       = []string{"at", "ts", "time", "timestamp"}
	resultNames     = []string{"result", "output"}
	errorNames      = []string{"error"}
	referenceNames  = []string{"reference", "ref"}
	callNames       = []string{"call_id", "tool_call_id"}
	verdictNames    = []string{"verdict", "outcome", "resolution"}
	idNames         = []string{"id"}
	ownNames        = []string{"v", "attempt", "by"} // written by us, and not read
)

// Parse reads a line. The error says what is wrong with it in a few words, never with a
// value out of it.
func Parse(line []byte) (Record, error) {
	var r Record
	if _, err := canon.ParseObject(line); err != nil {
		return r, notJSON(line, err)
	}
	m := members{}
	if err := json.Unmarshal(line, &m.all); err != nil {
		return r, errors.New("not a JSON object")
	}
	if !m.kind(&r) {
		return r, errors.New("no type that is known (intent, completed, failed, resolved, closed)")
	}
	v, versioned := m.all["v"]
	if versioned && string(bytes.TrimSpace(v)) != "1" {
		return r, errors.New("of another version than 1")
	}
	r.Run, r.Key, r.Tool = m.text(runNames), m.text(keyNames), m.text(toolNames)
	r.CallID, r.Reference, r.Time = m.text(callNames), m.text(referenceNames), m.moment(timeNames)
	r.Result, r.Error = m.raw(resultNames), m.raw(errorNames)
	if r.Kind == Resolved {
		r.ID, r.Verdict = m.text(idNames), verdicts[m.text(verdictNames)]
	}
	if r.Kind == Closed {
		if r.Outcome = outcomes[m.text(verdictNames)]; r.Outcome == "" {
			m.wrong("outcome", "is none of finished, failed and cancelled")
		}
	}
	m.arguments(&r)
	m.occurrence(&r)
	m.used(ownNames)
	switch {
	case m.problem != "":
		return r, errors.New(m.problem)
	case r.Kind != Closed && r.Key == "" && r.Tool == "":
		return r, errors.New("it names no effect: neither key nor tool")
	}
	r.Foreign = m.foreign()
	return r, nil
}

func notJSON(line []byte, err error) error {
	zeros := bytes.Count(line, []byte{0})
	switch c, ok := errors.AsType[*canon.Error](err); {
	case zeros == len(line) && zeros > 0:
		return fmt.Errorf("%d bytes of zero", zeros)
	case ok:
		return fmt.Errorf("not JSON: at byte %d: %s", c.Offset, c.Problem)
	}
	return errors.New("not a JSON object")
}

// members are those of a line, with what was taken from them.
type members struct {
	all     map[string]json.RawMessage
	taken   []string
	problem string
}

// raw is the first of the names that the line has, as it stands; nil for none and null.
func (m *members) raw(names []string) []byte {
	m.used(names)
	for _, n := range names {
		if v, ok := m.all[n]; ok && string(v) != "null" {
			return v
		}
	}
	return nil
}

func (m *members) used(names []string) { m.taken = append(m.taken, names...) }

// text is the first of the names that is a string.
func (m *members) text(names []string) string {
	v := m.raw(names)
	if v == nil {
		return ""
	}
	var s string
	if json.Unmarshal(v, &s) != nil {
		m.wrong(names[0], "is not a string")
	}
	return s
}

func (m *members) wrong(name, how string) {
	if m.problem == "" {
		m.problem = "its " + name + " " + how
	}
}

// kind finds what the line is: by the first member that holds a word which is known.
func (m *members) kind(r *Record) bool {
	for _, n := range kindNames {
		var s string
		v, ok := m.all[n]
		if !ok || json.Unmarshal(v, &s) != nil {
			continue
		}
		k, ok := words[strings.ToLower(s)]
		if !ok {
			continue
		}
		m.used([]string{n})
		r.Kind, r.Word = k, s
		return true
	}
	return false
}

// moment is a time as it was given: text, or seconds or milliseconds since 1970.
func (m *members) moment(names []string) string {
	v := bytes.TrimSpace(m.raw(names))
	switch {
	case len(v) == 0:
		return ""
	case v[0] == '"':
		var s string
		_ = json.Unmarshal(v, &s)
		return s
	}
	return string(v)
}

// When reads a time as an agent gives it; zero where it cannot be read.
func When(text string) time.Time {
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) > 1e14 {
		return time.Time{}
	}
	if math.Abs(f) > 1e11 { // milliseconds
		f /= 1000
	}
	return time.UnixMicro(int64(f * 1e6))
}

// arguments takes an object, or the text of one as model providers pass it.
func (m *members) arguments(r *Record) {
	v := bytes.TrimSpace(m.raw(argumentNames))
	if len(v) > 0 && v[0] == '"' {
		var s string
		if json.Unmarshal(v, &s) == nil {
			v = bytes.TrimSpace([]byte(s))
		}
		if _, err := canon.ParseObject(v); err != nil {
			m.wrong("arguments", "is no JSON object")
			return
		}
	}
	if len(v) > 0 && v[0] != '{' {
		m.wrong("arguments", "is no JSON object")
		return
	}
	if len(v) > 0 {
		r.Arguments = v
	}
}

func (m *members) occurrence(r *Record) {
	v := m.raw(occurrenceNames)
	if v == nil {
		return
	}
	n, err := strconv.Atoi(string(v))
	if err != nil || n < 1 || n > 1<<30 {
		m.wrong("occurrence", "does not count from 1")
		return
	}
	r.Occurrence = n
}

func (m *members) foreign() []byte {
	rest := map[string]json.RawMessage{}
	for n, v := range m.all {
		if !slices.Contains(m.taken, n) {
			rest[n] = v
		}
	}
	if len(rest) == 0 {
		return nil
	}
	b, err := json.Marshal(rest)
	if err != nil {
		return nil
	}
	return b
}
