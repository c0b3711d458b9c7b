package desk

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"quittance/ledger/inbox"
	"quittance/ledger/lookups"
	"quittance/reconcile/lookup"
	events "quittance/reconcile/lookup/inbox"
	"quittance/reconcile/policy"
	"quittance/views"
	"quittance/web"
)

// statsSpan is how far back the numbers about look-ups go.
const statsSpan = 7 * 24 * time.Hour

func (d *Desk) tools(r *request) error {
	return d.showTools(r, http.StatusOK, views.TryLookup{})
}

func (d *Desk) showTools(r *request, status int, try views.TryLookup) error {
	page, err := d.page(r, "Tools", "/tools")
	if err != nil {
		return err
	}
	p := d.engine.Policy()
	v := views.Tools{Page: page, Digest: p.Digest, Source: show(p.Source, 200_000, true)}
	var asked []string
	for _, t := range p.Tools() {
		if t.HasLookup() {
			asked = append(asked, t.Name)
		}
	}
	stats := map[string]lookups.Stats{}
	if len(asked) > 0 {
		list, err := lookups.StatsOf(r.ctx(), d.db, asked, statsSpan)
		if err != nil {
			return err
		}
		for _, s := range list {
			stats[s.Tool] = s
		}
	}
	for _, t := range p.Tools() {
		card := toolCard(t)
		if t.HasLookup() {
			card.Lookup = lookupCard(r.clock, t, stats[t.Name])
		}
		v.Tools = append(v.Tools, card)
	}
	if r.may(tester) && len(asked) > 0 {
		try.Action, try.Token = "/tools/lookup", r.session.FormToken()
		for _, name := range asked {
			try.Tools = append(try.Tools, views.Option{Value: name, Label: cutText(name, nameShown), Picked: name == try.Tool})
		}
		v.Try = &try
	}
	if v.Events, err = d.unmatched(r, p); err != nil {
		return err
	}
	return web.Render(r.Context, status, views.ToolsPage(v))
}

// eventsShown bounds the events that are listed.
const eventsShown = 20

// unmatched lists the events of inboxes that no call was found for; nil where the policy
// has no inbox.
func (d *Desk) unmatched(r *request, p *policy.Policy) (*views.Unmatched, error) {
	if !slices.ContainsFunc(p.Tools(), func(t *policy.Tool) bool { return t.HasLookup() && t.Lookup().Kind == events.Kind }) {
		return nil, nil
	}
	list, err := inbox.Unmatched(r.ctx(), d.db, eventsShown+1)
	if err != nil {
		return nil, err
	}
	v := &views.Unmatched{More: len(list) > eventsShown}
	for _, e := range list[:min(len(list), eventsShown)] {
		row := views.UnmatchedEvent{Inbox: name(e.Inbox), ID: name(e.EventID), At: r.at(e.ReceivedAt), Body: code([]byte(e.Body), "")}
		if e.Repeats > 0 {
			row.Times = fmt.Sprintf("sent %d times", e.Repeats+1)
		}
		v.Rows = append(v.Rows, row)
	}
	return v, nil
}

func toolCard(t *policy.Tool) views.Tool {
	v := views.Tool{Name: line(t.Name)}
	mark := func(kind, word string) { v.Marks = append(v.Marks, views.State{Kind: kind, Word: word}) }
	fact := func(name, value string) { v.Facts = append(v.Facts, views.Fact{Name: name, Value: line(value)}) }
	if !t.Guarded() {
		mark("plain", "Not guarded")
	}
	if t.Observe() {
		mark("plain", "Only observed: nothing is stopped")
	}
	if t.Guarded() && !t.HasLookup() {
		mark("unknown", "Blind: no look-up")
	}
	if key := t.BusinessKeyTemplate(); key != "" {
		fact("Business key", key)
	} else {
		fact("Business key", "none: the call itself, whole")
	}
	if len(t.Volatile) > 0 {
		fact("Left out of the key", strings.Join(t.Volatile, ", "))
	}
	fact("The same call again in a run", map[policy.Repeat]string{policy.RepeatHold: "held for a person", policy.RepeatAllow: "allowed"}[t.Repeat])
	fact("An attempt is sent within", exactly(t.Deadline))
	if d, declared := t.LandsWithin(); declared {
		fact("A sent request lands within", exactly(d))
	} else {
		fact("A sent request lands within", "not declared: absence proves nothing")
	}
	if k := t.VendorKey; k != nil {
		text := "lives " + exactly(k.Life)
		if k.ChecksBody {
			text += ", and refuses another body"
		}
		fact("The vendor's own key", text)
	}
	if t.Guarded() && !t.HasLookup() && t.VendorKey == nil {
		fact("What proves what happened", "nothing: the downstream keeps no key of ours and cannot be asked, so every call whose outcome is lost waits for a person")
	}
	if t.OnUnknown == policy.OnUnknownSameKey {
		fact("When the outcome is unknown", "sent again with the vendor's own key, while that lives")
	}
	if limits := t.SecondPersonAbove(); len(limits) > 0 {
		var words []string
		for _, a := range limits {
			words = append(words, a.Display())
		}
		fact("A second person above", strings.Join(words, ", "))
	}
	fact("Overdue after", exactly(t.OverdueAfter))
	return v
}

// lookupCard is how a tool's downstream is asked, and how that goes.
func lookupCard(c clock, t *policy.Tool, s lookups.Stats) *views.ToolLookup {
	l := t.Lookup()
	v := &views.ToolLookup{Title: "Look-up: " + l.Kind}
	fact := func(name, value string) { v.Facts = append(v.Facts, views.Fact{Name: name, Value: line(value)}) }
	if l.Source != nil && l.Source.Host() != "" {
		fact("Asked", l.Source.Host())
	}
	fact("Limits", limitsText(l))
	fact("Absence", absenceText(l.Terms))
	if s.Asked == 0 {
		fact("In 7 days", "nobody was asked")
		return v
	}
	fact("In 7 days", fmt.Sprintf("asked %s; %s could look (%s), %s proved something", times(s.Asked), grouped(s.Read), percent(s.Read, s.Asked), grouped(s.Proven)))
	fact("An answer took", fmt.Sprintf("%s in the middle; 95 %% at most %s", latency(seconds(s.Median)), latency(seconds(s.Slow))))
	fact("Asked last", c.at(s.Last.Time).Text)
	if s.ErrorWhy != "" {
		v.Error, v.ErrorAt, v.Mended = note(s.ErrorWhy), c.at(s.ErrorAt.Time), s.Mended
	}
	return v
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return grouped(n) + " times"
}

// percent rounds down, so that only all is 100 %.
func percent(part, whole int64) string { return fmt.Sprintf("%d %%", part*100/whole) }

func limitsText(l *lookup.Lookup) string {
	text := fmt.Sprintf("%d at once", l.AtOnce)
	if l.PerSecond > 0 {
		text += fmt.Sprintf(", %d a second", l.PerSecond)
	}
	return text
}

// absenceText says whether what is not shown there does not exist.
func absenceText(t lookup.Terms) string {
	if !t.AbsenceIsProof {
		return "proves nothing"
	}
	text := "is proof"
	if t.VisibleAfter != nil {
		text += ", " + exactly(*t.VisibleAfter) + " after it can land"
	}
	if t.KeptFor != nil {
		text += ", for " + exactly(*t.KeptFor)
	}
	return text
}
