package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"quittance/cmd/torture/payer"
	"quittance/ledger/proof"
)

// facts are all that is known after a round: what was planned, what the bank booked, what
// the record says, and what the agents were told.
type facts struct {
	Kind    kind
	Runs    []runs
	Booked  map[string][]string // by invoice, the bank's names of its payments
	Record  []proof.Run
	Stories map[string]string // of each run, how its processes ended
	Effects []proof.Effect
	Told    []told
	Stale   []string        // effects whose state a finish moved that was not the present attempt's
	Wrong   map[string]bool // invoices that a person decided against the truth
	Damage  []string        // what verify found
	Trouble []string        // what happened that must not, whatever the round
}

// The words for what a checker finds. Only a round of the kind ignores may have doubles.
const (
	double     = "double"     // paid more than once, where that must not be
	undetected = "undetected" // paid more than once, and no contradiction says so
	lost       = "lost"       // an effect that the record does not have
	unpaid     = "unpaid"     // the run finished and the bank has nothing
	stuck      = "stuck"      // a run that is neither finished nor waiting for somebody
	holders    = "holders"    // two processes acted for one run
	shared     = "shared"     // one record of the bank proves two effects
	fences     = "fences"     // a late finish spoke for an attempt that was not its own
	damage     = "damage"     // the log, the fold or the money
	trouble    = "trouble"
)

// finding is what is wrong.
type finding struct {
	What string `json:"what"`
	Text string `json:"text"`
}

func (f finding) String() string { return strings.ToUpper(f.What) + ": " + f.Text }

// found is a round's result.
type found struct {
	Findings []finding `json:"findings,omitempty"`
	Payments int       `json:"payments"`
	Doubles  int       `json:"doubles_detected"` // each a contradiction with a recovery
	Waiting  int       `json:"waiting"`          // runs that wait for somebody
	Finished int       `json:"finished"`
}

func (f *found) add(what, format string, args ...any) {
	f.Findings = append(f.Findings, finding{what, fmt.Sprintf(format, args...)})
}

// check finds everything that is not as the kind of round promises.
func check(f facts) (r found) {
	byInvoice := map[string][]proof.Effect{}
	for _, x := range f.Effects {
		invoice := strings.TrimPrefix(x.BusinessKey, payer.Payee+"/")
		byInvoice[invoice] = append(byInvoice[invoice], x)
	}
	finished := checkRuns(f, &r)
	payable := map[string]bool{}
	for _, run := range f.Runs {
		for _, invoice := range run.Invoices {
			payable[invoice] = payable[invoice] || finished[run.Name]
		}
	}
	for _, invoice := range slices.Sorted(maps.Keys(payable)) {
		checkInvoice(f, &r, invoice, byInvoice[invoice], payable[invoice])
	}
	checkTold(f, &r)
	checkHolders(f, &r)
	checkReferences(f, &r)
	for _, id := range f.Stale {
		r.add(fences, "effect %s in flight was closed by the finish of an earlier attempt", id)
	}
	for _, text := range f.Damage {
		r.add(damage, "%s", text)
	}
	for _, text := range f.Trouble {
		r.add(trouble, "%s", text)
	}
	return r
}

func checkRuns(f facts, r *found) (finished map[string]bool) {
	finished = map[string]bool{}
	record := map[string]proof.Run{}
	for _, run := range f.Record {
		record[run.ID] = run
	}
	for _, run := range f.Runs {
		switch v := record[run.Name]; {
		case v.State == "finished":
			finished[run.Name] = true
			r.Finished++
		case v.State == "paused" && v.Waiting > 0:
			r.Waiting++
		default:
			r.add(stuck, "%s is %q and waits for nothing (%s)", run.Name, v.State, f.Stories[run.Name])
		}
	}
	return finished
}

// checkInvoice holds the bank's book against the record.
func checkInvoice(f facts, r *found, invoice string, effects []proof.Effect, finished bool) {
	ids := f.Booked[invoice]
	r.Payments += len(ids)
	suspected, known := 0, false
	for _, x := range effects {
		suspected += x.Suspected
		known = known || x.State == "taken" || x.State == "interrupted" || x.State == "in_flight" || x.State == "cleared" || x.Suspected > 0
	}
	switch {
	case len(ids) == 0:
		if finished && !f.Wrong[invoice] {
			r.add(unpaid, "%s is not paid, and its run is finished", invoice)
		}
	case !known:
		r.add(lost, "the bank has %v for %s; the record has %s", ids, invoice, states(effects))
	case len(ids) == 1 && !f.Wrong[invoice]:
		for _, x := range effects {
			if x.State == "taken" && x.Reference != "" && x.Reference != ids[0] && x.Suspected == 0 {
				r.add(lost, "the bank has %s for %s; the record has %s", ids[0], invoice, x.Reference)
			}
		}
	case len(ids) > 1 && f.Kind != ignores:
		r.add(double, "the bank has %v for %s; the record has %s", ids, invoice, states(effects))
	case len(ids) > 1 && suspected == 0:
		r.add(undetected, "the bank has %v for %s; the record has %s", ids, invoice, states(effects))
	case len(ids) > 1:
		r.Doubles += len(ids) - 1
	}
}

func states(effects []proof.Effect) string {
	if len(effects) == 0 {
		return "nothing"
	}
	var list []string
	for _, x := range effects {
		list = append(list, fmt.Sprintf("%s %q by %s after %d attempts (%s of %s)", x.State, x.Reference, x.DecidedBy, x.Attempts, x.ID, x.Run))
	}
	return strings.Join(list, ", ")
}

// checkTold: what an agent was told is on record.
func checkTold(f facts, r *found) {
	byID := map[string]proof.Effect{}
	for _, x := range f.Effects {
		byID[x.ID] = x
	}
	for _, t := range f.Told {
		if t.Kind != payer.Begun && t.Kind != payer.Paid {
			continue
		}
		x, ok := byID[t.Effect]
		switch {
		case !ok:
			r.add(lost, "an agent of %s was told of effect %s for %s, which is not on record", t.Run, t.Effect, t.Invoice)
		case t.Kind == payer.Paid && t.Recorded && x.State != "taken" && x.Suspected == 0:
			r.add(lost, "an agent of %s was told that %s is paid; the record has %s", t.Run, t.Invoice, states([]proof.Effect{x}))
		}
	}
}

// checkHolders: once a process has the lease, none that had it before is let begin.
func checkHolders(f facts, r *found) {
	byRun := map[string][]told{}
	for _, t := range f.Told {
		byRun[t.Run] = append(byRun[t.Run], t)
	}
	for _, run := range slices.Sorted(maps.Keys(byRun)) {
		for _, begun := range byRun[run] {
			if begun.Kind != payer.Begun {
				continue
			}
			for _, next := range byRun[run] {
				if next.Kind == payer.Holds && next.Epoch > begun.Epoch && begun.Since.After(next.Since) {
					r.add(holders, "%s: process %d with epoch %d was let begin %s at %s; process %d held the run with epoch %d since %s", run, begun.Process, begun.Epoch,
						begun.Invoice, begun.Since.Format("15:04:05.000"), next.Process, next.Epoch, next.Since.Format("15:04:05.000"))
					break
				}
			}
		}
	}
}

// checkReferences: one record of a bank proves one effect.
func checkReferences(f facts, r *found) {
	owner := map[string]proof.Effect{}
	for _, x := range f.Effects {
		if x.Reference == "" {
			continue
		}
		key := x.Tool + "/" + x.Reference
		if before, taken := owner[key]; taken {
			r.add(shared, "%s proves %s and %s", x.Reference, before.BusinessKey, x.BusinessKey)
		}
		owner[key] = x
	}
}
