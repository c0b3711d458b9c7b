package desk

import (
	"net/http"
	"strings"

	"quittance/reconcile/policy"
	"quittance/views"
	"quittance/web"
)

func (d *Desk) tools(r *request) error {
	page, err := d.page(r, "Tools", "/tools")
	if err != nil {
		return err
	}
	p := d.engine.Policy()
	v := views.Tools{Page: page, Digest: p.Digest, Source: show(p.Source, 200_000, true)}
	for _, t := range p.Tools() {
		v.Tools = append(v.Tools, toolCard(t))
	}
	return web.Render(r.Context, http.StatusOK, views.ToolsPage(v))
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
	fact("An attempt is sent within", exactly(t.Deadline))
	if d, declared := t.LandsWithin(); declared {
		fact("A sent request lands within", exactly(d))
	} else {
		fact("A sent request lands within", "not declared: absence proves nothing")
	}
	fact("The same call again in a run", map[policy.Repeat]string{policy.RepeatHold: "held for a person", policy.RepeatAllow: "allowed"}[t.Repeat])
	if t.OnUnknown == policy.OnUnknownSameKey {
		fact("When the outcome is unknown", "sent again with the vendor's own key, while that lives")
	}
	if len(t.Volatile) > 0 {
		fact("Left out of the key", strings.Join(t.Volatile, ", "))
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
