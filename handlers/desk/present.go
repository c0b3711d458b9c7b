package desk

import (
	"strconv"
	"strings"
	"time"

	"quittance/ledger/money"
	"quittance/views"
)

// nameShown is how much of a tool, agent or run stands in a list.
const nameShown = 40

func name(s string) views.Text { return show(s, nameShown, false) }

func amount(a *money.Amount) *views.Money {
	if a == nil {
		return nil
	}
	value, code, _ := strings.Cut(a.Display(), " ")
	return &views.Money{Value: value, Code: code}
}

// unsent strikes the amount of an effect that is the same as another: it is asked for
// here, and leaves there.
func unsent(m *views.Money, same bool) *views.Money {
	if m != nil {
		m.Unsent = same
	}
	return m
}

func whole(n int64) string { return strconv.FormatInt(n, 10) }

// wholeSeconds rounds up: earlier would be too early.
func wholeSeconds(d time.Duration) string {
	return strconv.Itoa(int((d + time.Second - 1) / time.Second))
}

// standing is how an effect stands, as far as its badge tells.
type standing struct {
	state, why   string
	contradicted bool // an incident is open
	second       bool // a verdict waits for a second person
	confirm      bool // decided too early, and to be confirmed by now
	same         bool // as another effect: nothing was sent for it
}

// badge is the most pressing thing to say of an effect, as a word and a shape: the same
// in every list and on its own page.
func (s standing) badge() views.State {
	switch {
	case s.contradicted:
		return views.State{Kind: "danger", Word: "Contradiction"}
	case s.second:
		return views.State{Kind: "held", Word: "Second person"}
	case s.confirm:
		return views.State{Kind: "info", Word: "To confirm"}
	case s.same:
		return views.State{Kind: "plain", Word: "Same as another"}
	}
	switch s.state {
	case "in_flight":
		return views.State{Kind: "info", Word: "In flight"}
	case "interrupted":
		return views.State{Kind: "unknown", Word: "Not known"}
	case "held":
		return views.State{Kind: "held", Word: "Held, not started"}
	case "cleared":
		switch s.why {
		case "allowed":
			return views.State{Kind: "info", Word: "Allowed"}
		case "same_key":
			return views.State{Kind: "info", Word: "Same key again"}
		}
		return views.State{Kind: "info", Word: "Not taken, may run"}
	case "taken":
		return views.State{Kind: "ok", Word: "Taken"}
	case "failed":
		return views.State{Kind: "plain", Word: "Failed"}
	case "cancelled":
		return views.State{Kind: "stop", Word: "Cancelled"}
	}
	return views.State{Kind: "plain", Word: s.state}
}

// decidedBy says how an effect was closed; the ways are told apart for ever.
func decidedBy(by string) string {
	switch by {
	case "agent":
		return "by its agent"
	case "late_agent":
		return "by a late agent"
	case "look_up":
		return "by a look-up"
	case "vendor_key":
		return "by the vendor's own key"
	case "person":
		return "by a person"
	case "run_closed":
		return "when its run was closed"
	}
	return by
}
