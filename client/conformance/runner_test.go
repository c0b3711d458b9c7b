package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"quittance/client"
)

// command is a line on a runner's standard input.
type command struct {
	Op          string   `json:"op"`
	Run         string   `json:"run"`
	Agent       string   `json:"agent"`
	Agents      []string `json:"agents"`
	Lease       int      `json:"lease_seconds"`
	WaitHeldMS  int      `json:"wait_held_ms"`
	WaitReadyMS int      `json:"wait_ready_ms"`
	Tool        string   `json:"tool"`
	Arguments   string   `json:"arguments"`
	CallID      string   `json:"call_id"`
	Key         string   `json:"key"`
	Perform     script   `json:"perform"`
	Background  string   `json:"background"`
	Turn        int64    `json:"turn"`
	State       string   `json:"state"`
	Outcome     string   `json:"outcome"`
	Volatile    []string `json:"volatile"`
	Calls       int      `json:"calls"`
	Pool        string   `json:"pool"`
	Seen        string   `json:"seen"`
}

// script is what a tool does when it is let through.
type script struct {
	Pause     bool    `json:"pause"`
	LateByMS  int     `json:"late_by_ms"`
	Crash     bool    `json:"crash"`
	Raise     string  `json:"raise"`
	Refuse    *string `json:"refuse"`
	Result    *string `json:"result"`
	Reference string  `json:"reference"`
	Size      int     `json:"size"`
}

// answer is a line on its standard output.
type answer map[string]any

var ok = answer{"ok": true}

// runner is the Go client, told what to do.
type runner struct {
	c          *client.Client
	runs       map[string]*client.Run
	background map[string]*background
}

// background is a call that stands still in its tool.
type background struct {
	stands chan struct{} // closed when it does
	goOn   chan struct{}
	done   chan answer
	once   sync.Once
}

func runnerMain(in io.Reader, out io.Writer) int {
	r := &runner{
		c: client.New(os.Getenv("QUITTANCE_URL"), os.Getenv("QUITTANCE_TOKEN"),
			client.WithSpool(os.Getenv("QUITTANCE_SPOOL")), client.WithPatience(10*time.Second)),
		runs: map[string]*client.Run{}, background: map[string]*background{},
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var c command
		a := answer{"error": "usage", "detail": "the line is not a command"}
		if err := json.Unmarshal(lines.Bytes(), &c); err == nil {
			a = r.obey(context.Background(), c)
		}
		line, err := json.Marshal(a)
		if err != nil {
			panic(err)
		}
		_, _ = out.Write(append(line, '\n'))
	}
	return 0
}

func (r *runner) obey(ctx context.Context, c command) answer {
	run := r.runs[c.Run]
	switch c.Op {
	case "open":
		agent := c.Agent
		if agent == "" {
			agent = "bot"
		}
		run, err := r.c.Open(ctx, c.Run, client.RunOptions{Agent: agent, LeaseSeconds: c.Lease, WaitHeld: time.Duration(c.WaitHeldMS) * time.Millisecond})
		return r.opened(run, err)
	case "claim":
		run, err := r.c.Claim(ctx, client.RunOptions{WaitReady: time.Duration(c.WaitReadyMS) * time.Millisecond}, c.Agents...)
		return r.opened(run, err)
	case "digest":
		d, err := client.CallDigest(c.Tool, json.RawMessage(c.Arguments), c.Volatile)
		if err != nil {
			return answer{"error": "not_an_object"}
		}
		return answer{"digest": d}
	case "answer_lookups":
		return r.answerLookup(ctx, c)
	case "crash":
		os.Exit(9)
	case "go", "join":
		b := r.background[c.Background]
		if b == nil {
			return answer{"error": "usage", "detail": "no such background call"}
		}
		if c.Op == "go" {
			close(b.goOn)
			return ok
		}
		return <-b.done
	}
	if run == nil {
		return answer{"error": "usage", "detail": "the run is not open here"}
	}
	switch c.Op {
	case "call":
		if c.Background == "" {
			return call(ctx, run, c, nil)
		}
		b := &background{stands: make(chan struct{}), goOn: make(chan struct{}), done: make(chan answer, 1)}
		r.background[c.Background] = b
		go func() { b.done <- call(ctx, run, c, b) }()
		select {
		case <-b.stands:
			return ok
		case a := <-b.done:
			return a
		}
	case "bench":
		return bench(ctx, run, c)
	case "checkpoint":
		return result(run.Checkpoint(ctx, c.Turn, json.RawMessage(c.State)))
	case "state":
		return state(run)
	case "wait":
		return result(run.Wait(ctx))
	case "release":
		return result(run.Release(ctx))
	case "close":
		outcome := c.Outcome
		if outcome == "" {
			outcome = client.RunFinished
		}
		return result(run.Close(ctx, outcome))
	case "on_sigterm":
		run.ReleaseOnSignal(20*time.Second, syscall.SIGTERM)
		return ok
	}
	return answer{"error": "usage", "detail": "no such command"}
}

// answerLookup ends the loop once it has a question: what is under way is answered.
func (r *runner) answerLookup(ctx context.Context, c command) (a answer) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	err := r.c.AnswerLookups(ctx, c.Pool, 1, func(_ context.Context, q client.LookupQuestion) (found client.LookupFound, err error) {
		a = answer{"ok": true, "question": answer{"effect": q.EffectID, "tool": q.Tool, "business_key": q.BusinessKey, "arguments": string(q.Arguments)}}
		stop()
		return found, json.Unmarshal([]byte(c.Seen), &found)
	})
	if err != nil {
		return refusal(err)
	}
	return a
}

func bench(ctx context.Context, run *client.Run, c command) answer {
	var took []time.Duration
	for n := range c.Calls {
		start := time.Now()
		_, err := run.Do(ctx, c.Tool, map[string]int{"n": n}, func(context.Context, client.Call) (any, error) { return nil, nil })
		if err != nil {
			return refusal(err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return answer{"median_us": took[len(took)/2].Microseconds()}
}

func (r *runner) opened(run *client.Run, err error) answer {
	if err != nil {
		return refusal(err)
	}
	r.runs[run.ID()] = run
	a := state(run)
	a["ok"], a["run"] = true, run.ID()
	return a
}

func state(run *client.Run) answer {
	var saved json.RawMessage
	a := answer{"turn": run.Turn(), "state": nil}
	if found, err := run.State(&saved); err != nil {
		return refusal(err)
	} else if found {
		a["state"] = string(saved)
	}
	return a
}

func result(err error) answer {
	if err != nil {
		return refusal(err)
	}
	return ok
}

func call(ctx context.Context, run *client.Run, c command, b *background) answer {
	performed := 0
	var saw answer
	perform := func(_ context.Context, call client.Call) (any, error) {
		performed++
		saw = answer{"vendor_key": call.VendorKey, "attempt": call.Attempt, "arguments": string(call.Arguments)}
		return c.Perform.act(call, b)
	}
	var opts []client.DoOption
	if c.CallID != "" {
		opts = append(opts, client.CallID(c.CallID))
	}
	if c.Key != "" {
		opts = append(opts, client.WithKey(c.Key))
	}
	out, err := run.Do(ctx, c.Tool, json.RawMessage(c.Arguments), perform, opts...)
	refused, isRefused := errors.AsType[*client.RefusedError](err)
	var a answer
	if err != nil && !isRefused {
		a = refusal(err)
	} else {
		a = answer{
			"outcome": out.Outcome, "effect": out.EffectID, "replayed": out.Replayed, "recorded": out.Recorded, "decided_by": out.DecidedBy,
			"reference": out.Reference, "result_size": out.ResultSize, "result_digest": out.ResultDigest,
		}
		if isRefused {
			a["reason"] = string(refused.Reason)
		} else if out.Result != nil {
			a["result"] = string(out.Result)
		}
	}
	a["performed"] = performed
	if saw != nil {
		a["saw"] = saw
	}
	return a
}

func (s script) act(call client.Call, b *background) (any, error) {
	if s.Pause && b != nil {
		b.once.Do(func() { close(b.stands) })
		<-b.goOn
	}
	if s.LateByMS != 0 {
		time.Sleep(time.Until(call.Deadline) + time.Duration(s.LateByMS)*time.Millisecond)
		if err := call.Ready(); err != nil {
			return nil, err
		}
	}
	switch {
	case s.Crash:
		os.Exit(9)
	case s.Raise != "":
		return nil, toolError(s.Raise)
	case s.Refuse != nil:
		return nil, client.Refused(json.RawMessage(*s.Refuse))
	}
	var result any
	if s.Result != nil {
		result = json.RawMessage(*s.Result)
	}
	if s.Size != 0 {
		result = strings.Repeat("x", s.Size)
	}
	if s.Reference != "" {
		result = client.Reference(s.Reference, result)
	}
	return result, nil
}

func refusal(err error) answer {
	if p, ok := errors.AsType[*client.Paused](err); ok {
		waiting := []answer{}
		for _, w := range p.WaitingFor {
			waiting = append(waiting, answer{"effect": w.EffectID, "reason": w.Reason})
		}
		return answer{"paused": waiting, "cause": cause(p.Cause)}
	}
	p, isProblem := errors.AsType[*client.Problem](err)
	switch {
	case errors.Is(err, client.ErrNothingReady):
		return answer{"error": "nothing_ready"}
	case isProblem && strings.HasPrefix(p.Code, "http_"), errors.Is(err, client.ErrNoAnswer):
		return answer{"error": "no_answer"}
	case isProblem:
		return answer{"error": p.Code}
	case errors.Is(err, client.ErrLeaseLost):
		return answer{"error": client.CodeLeaseLost}
	case errors.Is(err, client.ErrRunClosed):
		return answer{"error": client.CodeRunClosed}
	case errors.Is(err, client.ErrArguments):
		return answer{"error": "not_an_object"}
	}
	if e, ok := errors.AsType[toolError](err); ok {
		return answer{"error": "tool", "detail": string(e)}
	}
	return answer{"error": "usage", "detail": fmt.Sprint(err)}
}

// toolError is what a tool of a scenario fails with.
type toolError string

func (e toolError) Error() string { return string(e) }

// cause is what a pause says about the call that was made just now.
func cause(err error) string {
	_, refused := errors.AsType[*client.Problem](err)
	switch {
	case err == nil, refused:
		return ""
	case errors.Is(err, client.ErrTooLate):
		return "too_late"
	}
	return "tool: " + err.Error()
}
