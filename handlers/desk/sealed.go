package desk

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"quittance/views"
)

// sealLate is when the sealer counts as stuck, and a table as waiting: it seals each
// second, and a writer takes milliseconds.
const sealLate = 15 * time.Second

// damagesShown bounds the list of what was found damaged; `quittance verify` has it all.
const damagesShown = 20

// sealLines say how the sealed record stands: the chain, its anchor, and each thing that
// was found missing or changed, for ever.
func (d *Desk) sealLines(r *request) ([]views.HealthLine, error) {
	if d.sealer == nil {
		return nil, nil
	}
	s := d.sealer.Status()
	chain := views.HealthLine{Name: "Sealed log", State: views.State{Kind: "ok", Word: "Sealed"}, Text: fmt.Sprintf("Up to block %s.", grouped(s.Head.Number))}
	switch {
	case s.Trouble != "":
		chain.State, chain.Text = views.State{Kind: "danger", Word: "Fails"}, chain.Text+" "+capital(s.Trouble)+" fails; the server's log says why."
	case s.Passed.IsZero() && time.Since(d.began) < sealLate:
		chain.Text = "The sealer has not run yet."
	case time.Since(s.Passed) > sealLate:
		chain.State, chain.Text = views.State{Kind: "danger", Word: "Stuck"}, chain.Text+" Nothing was sealed since "+r.at(s.Passed).Text+"."
	}
	for _, table := range slices.Sorted(maps.Keys(s.Waits)) {
		if since := s.Waits[table]; time.Since(since) > sealLate {
			chain.State = views.State{Kind: "unknown", Word: "Waits"}
			chain.Text += fmt.Sprintf(" A transaction has had %s open for writing since %s: what comes after it is not sealed.", table, r.at(since).Text)
		}
	}
	anchor := views.HealthLine{Name: "Anchor", State: views.State{Kind: "ok", Word: "Written"}, Text: fmt.Sprintf("Block %s, in %s.", grouped(s.Anchored), s.Anchor)}
	switch {
	case s.Anchor == "":
		anchor.State, anchor.Text = views.State{Kind: "unknown", Word: "Off"}, "The head of the log is kept in the database alone: a restore from an older backup may go unnoticed."
	case s.AnchorTrouble != "":
		anchor.State, anchor.Text = views.State{Kind: "danger", Word: "Fails"}, anchor.Text+" It cannot be written now; the server's log says why."
	case s.Anchored == 0:
		anchor.State.Word, anchor.Text = "Empty", "Nothing is sealed yet. It will be in "+s.Anchor+"."
	}
	lines := []views.HealthLine{chain, anchor}
	found, err := d.sealer.Damages(r.ctx(), damagesShown)
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		lines = append(lines, views.HealthLine{Name: "Damage", State: views.State{Kind: "danger", Word: "Found"}, Text: r.at(f.FoundAt.Time).Text + ": " + cutText(f.What, foundShown)})
	}
	return lines, nil
}
