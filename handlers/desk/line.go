package desk

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"quittance/ledger/desk"
	store "quittance/ledger/effects"
	"quittance/reconcile/effects"
	"quittance/views"
)

// told is one line of the history before it is laid out.
type told struct {
	at     time.Time
	kind   string
	title  string
	detail string
	fold   *views.Fold
}

// history tells what happened to an effect, oldest first: its own log, its run's
// leases, what was refused, what was seen, what the downstream said, and what people did.
func history(r *request, v effects.EffectView, looks effects.LooksView, log []store.Event, run []desk.Event) []views.Event {
	lines := fromLog(v, log, r.clock)
	lines = append(lines, fromRun(v, run)...)
	later := slices.DeleteFunc(slices.Clone(v.Refused), func(x effects.RefusedView) bool { return x.At.Equal(v.OpenedAt) })
	lines = append(lines, fromRefusals(later, r.clock)...)
	lines = append(lines, fromLooks(looks, r.clock)...)
	for _, e := range v.Evidence {
		if !toldByLook(looks, e) {
			lines = append(lines, ofEvidence(e, r.clock))
		}
	}
	for _, d := range v.Decisions {
		lines = append(lines, ofDecision(d))
	}
	for _, c := range v.Contradictions {
		lines = append(lines, told{at: c.At, kind: "danger", title: "Contradiction: " + contradictionText(c.Kind)})
	}
	slices.SortStableFunc(lines, func(a, b told) int { return a.at.Compare(b.at) })
	out := make([]views.Event, len(lines))
	for i, l := range lines {
		out[i] = views.Event{At: r.short(l.at), Kind: l.kind, Title: note(l.title), Detail: note(l.detail), Fold: l.fold}
		if i == 0 || !r.sameDay(lines[i-1].at, l.at) {
			out[i].Day = r.day(l.at)
		}
	}
	return out
}

// fromLog tells the changes of the effect itself; what people decided is told from
// their decisions, which say why.
func fromLog(v effects.EffectView, log []store.Event, c clock) (lines []told) {
	for _, e := range log {
		var p struct {
			State     string    `json:"state"`
			Why       string    `json:"why"`
			Attempts  int       `json:"attempts"`
			Deadline  time.Time `json:"deadline"`
			Reference string    `json:"reference"`
			Cause     struct {
				By, Lease, Worker, Outcome, Line string
				ResolvedLine                     string `json:"resolved_line"`
			} `json:"cause"`
		}
		_ = json.Unmarshal([]byte(e.Data), &p) // our own; at worst a line says less
		l := told{at: e.At.Time, kind: "plain"}
		switch e.Kind {
		case "begin":
			l.title, l.detail = beginText(v, p.State, p.Why, p.Attempts, c.at(p.Deadline).Text)
			switch {
			case p.State == "held":
				l.kind = "held"
			case p.State == "in_flight" && p.Cause.ResolvedLine != "":
				l.title, l.detail = "Written to the agent's log file: one more attempt may run", "The permission ends "+c.at(p.Deadline).Text
			}
		case "answered":
			l.kind, l.title = "ok", "Resumed: the agent was answered from the record, nothing was sent"
			if p.State == "cancelled" {
				l.kind, l.title = "plain", "The agent was told that this must not run"
			}
			if p.Cause.ResolvedLine != "" {
				l.detail = "By a line in the log file that it keeps"
			}
		case "interrupted":
			l.kind, l.title = "unknown", "Interrupted: what became of it is not known. The run is paused"
			l.detail = interruptedText(p.Why, p.Cause.Lease, p.Cause.Worker)
		case "finish":
			if toldByEvidence(v, e.At.Time) {
				continue
			}
			l.title = "The agent reported: " + p.Cause.Outcome
			switch p.State {
			case "taken":
				l.kind, l.detail = "ok", p.Reference
			case "interrupted":
				l.kind, l.detail = "unknown", "It could not say whether it took effect. The run is paused"
			}
		case "released":
			l.kind, l.title = "info", "Released: agents see the decision from now on"
		case "expired":
			l.kind, l.title = "unknown", "The permission was not used in time and has lapsed"
		case "withdrawn":
			l.kind, l.title = "held", "The permission was withdrawn: the effect it overlaps was reopened"
		case "run_closed":
			l.title = "The run was closed"
		case "log_gap":
			l.kind, l.title = "unknown", "The database may have lost events: whatever was open counts as not known"
		case "written":
			l.title, l.detail = "The agent's own log says that it began", p.Cause.Line
		case "log_file_changed":
			l.kind, l.title = "unknown", "The agent's log file was changed: whatever was open in it counts as not known"
		default:
			continue // told by its decision or its evidence
		}
		lines = append(lines, l)
	}
	return lines
}

// toldByEvidence tells whether a finish is told by what was kept of it.
func toldByEvidence(v effects.EffectView, at time.Time) bool {
	return slices.ContainsFunc(v.Evidence, func(e effects.EvidenceView) bool {
		return e.At.Equal(at) && (e.Source == "agent" || e.Source == "late_agent")
	})
}

// toldByLook tells whether evidence is told by the look that it comes from.
func toldByLook(v effects.LooksView, e effects.EvidenceView) bool {
	return e.Source == "look_up" && slices.ContainsFunc(v.Looks, func(l effects.LookView) bool { return l.AnsweredAt.Equal(e.At) })
}

func beginText(v effects.EffectView, state, why string, attempts int, until string) (title, detail string) {
	switch state {
	case "held":
		if why == "no_business_key" {
			return "Held before it started: its business key is incomplete", ""
		}
		return "Held before it started: another effect has the same business key", ""
	case "interrupted":
		return "Asked for, and not cleared: an earlier attempt may exist that this record does not hold", ""
	}
	worker := ""
	if attempts >= 1 && attempts <= len(v.Attempts) {
		worker = v.Attempts[attempts-1].Worker
	}
	title = "Intent recorded"
	if attempts > 1 {
		title = fmt.Sprintf("Attempt %d begun", attempts)
	}
	if worker != "" {
		title += " by " + worker
	}
	return title, "To be sent by " + until
}

func interruptedText(why, lease, worker string) string {
	switch {
	case lease == "expired":
		return "The last sign of life of " + worker + " is older than its lease"
	case lease == "released":
		return worker + " gave its lease back without an outcome"
	case why == "deadline":
		return "No outcome came by the deadline"
	}
	return ""
}

// fromRun tells who held the run while the effect was open.
func fromRun(v effects.EffectView, log []desk.Event) (lines []told) {
	for _, e := range log {
		if e.At.Before(v.OpenedAt) {
			continue
		}
		var p struct{ Worker string }
		_ = json.Unmarshal([]byte(e.Data), &p)
		switch e.Kind {
		case "leased":
			lines = append(lines, told{at: e.At, kind: "plain", title: "The run was taken up by " + p.Worker})
		case "lease_expired":
			lines = append(lines, told{at: e.At, kind: "plain", title: "The lease of " + p.Worker + " ran out"})
		case "lease_released":
			lines = append(lines, told{at: e.At, kind: "plain", title: p.Worker + " gave the run back"})
		}
	}
	return lines
}

// fromRefusals tells repeats in one line, with the last of them: a queue may redeliver a
// run a hundred times, to a worker of another name each.
func fromRefusals(list []effects.RefusedView, c clock) (lines []told) {
	type kind struct{ call, reason string }
	var order []kind
	alike := map[kind][]effects.RefusedView{}
	for _, x := range list {
		k := kind{x.Call, x.Reason}
		if alike[k] == nil {
			order = append(order, k)
		}
		alike[k] = append(alike[k], x)
	}
	for _, k := range order {
		lines = append(lines, ofRefusals(alike[k], c))
	}
	return lines
}

// workersShown is how many workers a line about refusals names.
const workersShown = 3

// ofRefusals tells refusals of one call for one reason, oldest first.
func ofRefusals(list []effects.RefusedView, c clock) told {
	first, last := list[0], list[len(list)-1]
	one, many := "A start of the run was refused", "%d starts of the run were refused"
	if first.Call == "begin" {
		one, many = "A begin was refused", "%d begins were refused"
	}
	l := told{at: first.At, kind: "plain", title: one, detail: strings.ReplaceAll(first.Reason, "_", " ")}
	if len(list) > 1 {
		l.title = fmt.Sprintf(many, len(list))
		l.detail += ", the last at " + c.at(last.At).Text
	}
	var workers []string
	for _, x := range list {
		if x.Worker != "" && !slices.Contains(workers, x.Worker) {
			workers = append(workers, x.Worker)
		}
	}
	if n := len(workers) - workersShown; n > 0 {
		workers = append(workers[:workersShown], fmt.Sprintf("%d more", n))
	}
	if len(workers) > 0 {
		l.detail += ", asked by " + strings.Join(workers, ", ")
	}
	return l
}

func ofEvidence(e effects.EvidenceView, c clock) told {
	l := told{at: e.At, kind: "info", detail: e.Seen}
	found := map[string]string{
		"taken": "it took effect", "not_taken": "it did not take effect", "failed": "it was refused", "reversed": "it took effect and was reversed",
		"inconclusive": "cannot tell",
	}[e.Verdict]
	if e.Reference != "" {
		found += ", " + e.Reference
	}
	switch e.Source {
	case "person":
		l.kind, l.title = "person", e.Person+" looked: "+found
		if !e.NextLook.IsZero() {
			l.detail = strings.TrimSpace(l.detail + "\nLook again " + c.at(e.NextLook).Text)
		}
	case "late_agent":
		l.title = fmt.Sprintf("A late report of attempt %d: %s", e.Fence, found)
	case "agent":
		l.title = "The agent reported: " + found
	case "look_up":
		l.title = "Asked the downstream: " + found
	case "vendor_key":
		l.title = "The vendor's own key: " + found
	default:
		l.title = "Noted: " + found
	}
	return l
}

func ofDecision(d effects.DecisionView) told {
	who := d.Person
	if who == "" {
		who = map[string]string{"look_up": "A look-up", "vendor_key": "The vendor's key", "late_agent": "A late agent", "system": "The server"}[d.By]
	}
	said := verdictText(d.Verdict)
	l := told{at: d.At, kind: "person", detail: d.Note}
	switch d.Act {
	case "decide":
		l.title = who + " decided: " + said
	case "propose":
		l.title = who + " said: " + said + ". It waits for a second person"
	case "confirm":
		l.title = who + " confirmed: " + said
	case "concur":
		l.title = who + " agreed: " + said
	case "send_back":
		l.title = who + " sent the verdict back"
	case "undo":
		l.title = who + " took the decision back"
	case "acknowledge":
		l.title = who + " acknowledged the contradiction"
	case "reopen":
		l.kind, l.title = "unknown", "Reopened: something was found that speaks against the decision"
	}
	if d.Reference != "" {
		l.title += " (" + d.Reference + ")"
	}
	return l
}

// verdictText is a verdict in a few words.
func verdictText(v string) string {
	switch v {
	case "taken":
		return "it took effect"
	case "not_taken":
		return "it did not take effect, it may run again"
	case "stop":
		return "it did not take effect, do not send it"
	case "allow":
		return "it may run"
	case "same_as":
		return "it is the same as another effect"
	case "failed":
		return "it was refused"
	case "same_key":
		return "it may be sent again with the same key"
	}
	return v
}

func contradictionText(kind string) string {
	switch kind {
	case "earlier_attempt_taken":
		return "an earlier attempt took effect after a later one was cleared"
	case "other_reference":
		return "it was seen to take effect under another reference too"
	case "several_hits":
		return "the downstream shows it more than once"
	case "used_but_not_taken":
		return "the agent went on as if it had happened, and it had not"
	case "failed_but_taken":
		return "it was reported as refused, and it took effect"
	case "stopped_but_taken":
		return "it was stopped, and it took effect all the same"
	case "begun_unasked":
		return "the agent began it again, and nothing had let it: it may have happened twice"
	case "business_key_held_by_another":
		return "another effect with the same business key took effect too"
	}
	return strings.ReplaceAll(kind, "_", " ")
}
