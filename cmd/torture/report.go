package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// report is what a torture came to.
type report struct {
	Command  string        `json:"command"`
	Seed     uint64        `json:"seed"`
	Broken   string        `json:"broken,omitempty"`  // the guard that was switched off
	Noticed  bool          `json:"noticed,omitempty"` // by what it is there for
	Took     time.Duration `json:"took_ns"`
	Rounds   int           `json:"rounds"`
	Runs     int           `json:"runs"`
	Payments int           `json:"payments"`
	Kills    int64         `json:"kills"`
	Stops    int64         `json:"stops"`
	Cuts     int64         `json:"cuts"`

	Doubles    int `json:"doubles"`          // where none may be
	Detected   int `json:"doubles_detected"` // at the bank that enforces nothing
	Undetected int `json:"doubles_undetected"`
	Lost       int `json:"lost"`
	Stuck      int `json:"stuck"`
	Waiting    int `json:"waiting"`
	Other      int `json:"other"` // findings of any other sort

	People   map[string]int `json:"people"` // what the operators did
	Findings []roundFinding `json:"findings,omitempty"`
}

type roundFinding struct {
	Round int  `json:"round"`
	Kind  kind `json:"kind"`
	finding
}

// add counts a round.
func (r *report) add(p plan, f found, acts map[string]int) {
	r.Rounds++
	r.Runs += len(p.Runs)
	r.Payments += f.Payments
	r.Detected += f.Doubles
	r.Waiting += f.Waiting
	for what, n := range acts {
		r.People[what] += n
	}
	for _, one := range f.Findings {
		r.Findings = append(r.Findings, roundFinding{p.Round, p.Kind, one})
		switch one.What {
		case double:
			r.Doubles++
		case undetected:
			r.Undetected++
		case lost, unpaid:
			r.Lost++
		case stuck:
			r.Stuck++
		default:
			r.Other++
		}
	}
}

// has tells whether something was found that goes by one of these words.
func (r *report) has(what []string) bool {
	return slices.ContainsFunc(r.Findings, func(f roundFinding) bool { return slices.Contains(what, f.What) })
}

// write writes the report to a file, if there is one, after each round: a torture that is
// cut short has said what it came to.
func (r *report) write(file string) error {
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.WriteFile(file, append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("couldn't write the report: %w", err)
	}
	return nil
}

func (r *report) text(out io.Writer) {
	fmt.Fprintf(out, "%s\nseed %d, %d rounds, %d runs, %d payments in %v\n", r.Command, r.Seed, r.Rounds, r.Runs, r.Payments, r.Took.Round(time.Second))
	if r.Broken != "" {
		fmt.Fprintf(out, "with the guard %q switched off; noticed: %v\n", r.Broken, r.Noticed)
	}
	fmt.Fprintf(out, "kills %d, stops %d, cuts %d\n", r.Kills, r.Stops, r.Cuts)
	fmt.Fprintf(out, "doubles %d, detected at the bank that enforces nothing %d, undetected %d, lost %d, stuck %d, other %d; runs that wait for somebody %d\n",
		r.Doubles, r.Detected, r.Undetected, r.Lost, r.Stuck, r.Other, r.Waiting)
	var acts []string
	for _, what := range slices.Sorted(maps.Keys(r.People)) {
		acts = append(acts, fmt.Sprintf("%s %d", what, r.People[what]))
	}
	fmt.Fprintf(out, "people: %s\n", strings.Join(acts, ", "))
	for _, f := range r.Findings {
		fmt.Fprintf(out, "round %d (%s): %v\n", f.Round, f.Kind, f.finding)
	}
}
