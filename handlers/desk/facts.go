package desk

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"quittance/ledger/desk"
	"quittance/reconcile/effects"
	"quittance/views"
)

func facts(s subject) []views.Fact {
	list := []views.Fact{
		{Name: "Tool", Value: line(s.Tool)}, {Name: "Agent", Value: line(s.Agent)}, {Name: "Account", Value: line(s.Account)},
		{Name: "Run", Value: line(s.RunID), URL: fmt.Sprintf("/runs/%d", s.run)},
	}
	add := func(name, value string) {
		if value != "" {
			list = append(list, views.Fact{Name: name, Value: line(value)})
		}
	}
	add("Business key", s.BusinessKey)
	add("Reference", s.Reference)
	add("Occurrence", fmt.Sprint(s.Occurrence))
	for _, a := range s.Attempts {
		add(fmt.Sprintf("Attempt %d", a.Number), fmt.Sprintf("%s, fence %d", orSomebody(a.Worker), a.Fence))
	}
	add("Call id", s.CallID)
	add("Time by the client's clock", s.ClientTime)
	var context struct {
		Labels map[string]string `json:"labels"`
		Why    string            `json:"why"`
		DueAt  string            `json:"due_at"`
		Trace  string            `json:"trace"`
	}
	if json.Unmarshal(s.Context, &context) == nil {
		add("Why the agent wants it", context.Why)
		add("Due", context.DueAt)
		add("Trace", context.Trace)
		labels := make([]string, 0, len(context.Labels))
		for k, v := range context.Labels {
			labels = append(labels, k+"="+v)
		}
		slices.Sort(labels)
		add("Labels", strings.Join(labels, ", "))
	}
	if s.SameAs != "" {
		list = append(list, views.Fact{Name: "Same as", Value: line(s.SameAs), URL: effectURL(s.SameAs)})
	}
	if s.RepeatOf != "" {
		list = append(list, views.Fact{Name: "Repeats", Value: line(s.RepeatOf), URL: effectURL(s.RepeatOf)})
		add("With those before it", together(s.repeats))
	}
	add("Key", s.Key)
	return append(list, views.Fact{Name: "Effect", Value: line(s.EffectID)})
}

// together says what an effect and the identical calls before it came to: two honest refunds
// of ten are twenty, which neither of them shows. How much there was to give back nobody told
// us.
func together(x desk.Repeats) string {
	text := fmt.Sprintf("%d of %d identical calls took effect", x.Taken, x.Before+1)
	if sum := moneyOf(x.Amount, x.Currency, x.Decimals); sum != nil && x.Assets == 1 {
		text += ", " + sum.Display() + " in all"
	}
	return text
}

// warnings are what a reader could be misled by.
func warnings(s subject) (list []string) {
	text, _ := prettyJSON(s.Arguments, shownJSON)
	if odd(text) || odd(line(s.BusinessKey)) || odd(line(s.Tool)) {
		list = append(list, "The arguments hold characters that cannot be seen, or that look like others. They are marked below: what you read may not be what the tool was sent.")
	}
	if s.AmountProblem != "" {
		list = append(list, "The amount cannot be read ("+s.AmountProblem+"). It counts as above every limit.")
	}
	return list
}

func overlap(r *request, s subject, o effects.OverlapView) views.Overlap {
	v := views.Overlap{
		URL: effectURL(o.EffectID), Run: cutText(o.RunID, nameShown), Opened: r.at(o.OpenedAt).Text, State: standing{state: o.State}.badge(),
		Amount: amount(o.Amount), Holds: o.Owner,
	}
	v.Differences, v.Same = differences(s.Arguments, o.Arguments)
	return v
}
