package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"quittance/client"
)

// scenario is a file of steps.
type scenario struct {
	About string `json:"about"`
	Steps []step `json:"steps"`
}

// step is one of the kinds of README.md: the members of the others are empty.
type step struct {
	To   string         `json:"to"`
	Send map[string]any `json:"send"`
	Want map[string]any `json:"want"`
	Then string         `json:"then"`

	Again bool `json:"again"`

	Kill  string `json:"kill"`
	Term  string `json:"term"`
	Ended bool   `json:"ended"`

	Expire string `json:"expire"`

	Fault  string `json:"fault"`
	On     string `json:"on"`
	Times  int    `json:"times"`
	HoldMS int    `json:"hold_ms"`
	Faults string `json:"faults"`

	Decide    string `json:"decide"`
	Verdict   string `json:"verdict"`
	Reference string `json:"reference"`
	Result    string `json:"result"`
	SameAs    string `json:"same_as"`
	Refused   string `json:"refused"`

	Until *until `json:"until"`

	Effects *int   `json:"effects"`
	Tool    string `json:"tool"`
}

// until is a state of things that comes by itself.
type until struct {
	Run    string         `json:"run"`
	State  string         `json:"state"`
	Effect string         `json:"effect"`
	Is     map[string]any `json:"is"`
	Moment string         `json:"moment"`
	Spool  *int           `json:"spool"`
}

// play is one scenario in one language.
type play struct {
	t       *testing.T
	w       *world
	gate    *gate
	agent   *client.Client // past the gate
	account string
	env     []string
	args    []string
	next    []string // the runner of all but the first process, in another language
	spool   string
	all     map[string]*process
	names   names
}

func load(t *testing.T, name string) scenario {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("scenarios", name+".json"))
	must(t, err)
	var s scenario
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil || s.About == "" || len(s.Steps) == 0 {
		t.Fatalf("couldn't read the scenario %s: %v", name, err)
	}
	return s
}

func (w *world) play(t *testing.T, language string, args, next []string, name string) {
	s := load(t, name)
	account := language + "/" + name
	token := w.account(t, account)
	p := &play{
		t: t, w: w, gate: newGate(t, w.handler), account: account, args: args, next: next, spool: t.TempDir(),
		all: map[string]*process{}, names: names{},
	}
	p.agent = client.New(w.url, token, client.WithSpool(t.TempDir()))
	t.Cleanup(p.agent.Close)
	p.env = append(os.Environ(), runnerVariable+"=1", "QUITTANCE_URL="+p.gate.URL, "QUITTANCE_TOKEN="+token, "QUITTANCE_SPOOL="+p.spool)
	for i, step := range s.Steps {
		if wrong := p.step(step); wrong != "" {
			line, _ := json.Marshal(step.Send)
			t.Fatalf("%s, step %d %s: %s", name, i+1, line, wrong)
		}
	}
}

func (p *play) step(s step) string {
	switch {
	case s.To != "":
		return p.send(s)
	case s.Kill != "":
		p.all[s.Kill].end(syscall.SIGKILL)
		delete(p.all, s.Kill)
	case s.Term != "":
		return p.term(s)
	case s.Expire != "":
		return p.expire(s.Expire)
	case s.Faults == "none":
		p.gate.heal()
	case s.Fault != "":
		if faultKinds[s.Fault] == nil {
			return "no such fault"
		}
		p.gate.fail(fault{s.Fault, s.On, max(s.Times, 1), time.Duration(s.HoldMS) * time.Millisecond})
	case s.Decide != "":
		return p.decide(s)
	case s.Until != nil:
		return p.await(*s.Until)
	case s.Effects != nil:
		return p.count(*s.Effects, s.Tool)
	default:
		return "the step does nothing"
	}
	return ""
}

func (p *play) send(s step) string {
	c, err := p.names.fill(s.Send)
	if err != nil {
		return err.Error()
	}
	if p.all[s.To] == nil {
		p.all[s.To] = start(p.t, s.To, p.env, p.args)
		p.args = p.next
	}
	got, err := p.all[s.To].ask(c.(map[string]any))
	for end := time.Now().Add(patience); s.Again && err == nil && p.names.compare("", s.Want, got) != "" && time.Now().Before(end); {
		got, err = p.all[s.To].ask(c.(map[string]any))
	}
	if s.Then == "nothing" {
		if !errors.Is(err, errEnded) {
			return fmt.Sprintf("the process did not end: %v %v", got, err)
		}
		delete(p.all, s.To)
		return ""
	}
	if err != nil {
		return err.Error()
	}
	if wrong := p.names.compare("", s.Want, got); wrong != "" {
		text, _ := json.Marshal(got)
		return fmt.Sprintf("%s\nin the answer %s", wrong, cut(string(text)))
	}
	return ""
}

func (p *play) term(s step) string {
	one := p.all[s.Term]
	if !s.Ended {
		_ = one.cmd.Process.Signal(syscall.SIGTERM)
		return ""
	}
	one.end(syscall.SIGTERM)
	delete(p.all, s.Term)
	if !one.endedBy(syscall.SIGTERM) {
		return "the process did not end by the signal: " + one.cmd.ProcessState.String()
	}
	return ""
}

// expire ends the lease of a run whose process is gone, as time would.
func (p *play) expire(run string) string {
	got, err := p.w.db.Pool().ExecContext(p.t.Context(), `
		UPDATE runs SET lease_until = clock_timestamp() - interval '1 millisecond'
		WHERE run_id = $1 AND lease_until IS NOT NULL AND account_id = (SELECT id FROM accounts WHERE name = $2)`, run, p.account)
	if err != nil {
		return err.Error()
	}
	if n, err := got.RowsAffected(); err != nil || n != 1 {
		return fmt.Sprintf("%d leases were ended, %v", n, err)
	}
	return ""
}

func (p *play) decide(s step) string {
	x, err := p.effect(s.Decide)
	if err != nil {
		return err.Error()
	}
	same, err := p.names.fill(s.SameAs)
	if err != nil {
		return err.Error()
	}
	d := client.DecisionRequest{Version: x.Version, Verdict: s.Verdict, Note: "looked at the bank", Reference: s.Reference, SameAs: same.(string)}
	if s.Result != "" {
		d.Result = json.RawMessage(s.Result)
	}
	_, err = p.w.operator.Decide(p.t.Context(), x.EffectID, d)
	if refusal, ok := errors.AsType[*client.Problem](err); ok && refusal.Code == s.Refused {
		return ""
	}
	if err != nil || s.Refused != "" {
		return fmt.Sprintf("the decision was answered by %v", err)
	}
	return ""
}

// await looks until it holds, for as long as patience lasts.
func (p *play) await(u until) (wrong string) {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if wrong = p.holds(u); wrong == "" {
			return ""
		}
	}
	return "never: " + wrong
}

func (p *play) holds(u until) string {
	if u.Run != "" {
		v, err := p.agent.Run(p.t.Context(), u.Run, 0)
		if err != nil || v.State != u.State {
			return fmt.Sprintf("the run is %q, want %q, %v", v.State, u.State, err)
		}
	}
	if u.Spool != nil {
		files, err := filepath.Glob(filepath.Join(p.spool, "[0-9]*.json"))
		if err != nil || len(files) != *u.Spool {
			return fmt.Sprintf("%d outcomes are in the spool, want %d, %v", len(files), *u.Spool, err)
		}
	}
	if u.Moment != "" {
		x, err := p.effect(u.Moment)
		if err != nil || x.Moment == nil || !time.Now().After(*x.Moment) {
			return fmt.Sprintf("the moment is %v, %v", x.Moment, err)
		}
	}
	if u.Effect == "" {
		return ""
	}
	x, err := p.effect(u.Effect)
	if err != nil {
		return err.Error()
	}
	text, err := json.Marshal(x)
	if err != nil {
		return err.Error()
	}
	var got any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&got); err != nil {
		return err.Error()
	}
	return p.names.compare("", u.Is, got)
}

func (p *play) effect(name string) (client.EffectView, error) {
	id, err := p.names.fill(name)
	if err != nil {
		return client.EffectView{}, err
	}
	return p.w.operator.Effect(p.t.Context(), id.(string))
}

func (p *play) count(want int, tool string) string {
	var n int
	err := p.w.db.Get(p.t.Context(), &n, `
		SELECT count(*) FROM effects e JOIN accounts a ON a.id = e.account_id
		WHERE a.name = $1 AND ($2 = '' OR e.tool = $2)`, p.account, tool)
	if err != nil || n != want {
		return fmt.Sprintf("%d effects, want %d, %v", n, want, err)
	}
	return ""
}
