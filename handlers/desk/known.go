package desk

import (
	"fmt"
	"time"

	"quittance/views"
)

// lead says in a sentence who asked for it and when.
func lead(r *request, s subject) string {
	text := s.Agent + " asked " + cutText(s.Tool, nameShown) + " for this at " + r.at(s.OpenedAt).Text
	if s.Occurrence > 1 {
		text += fmt.Sprintf(", as the %s identical call of its run", ordinal(s.Occurrence))
	}
	switch n := len(s.Attempts); {
	case n == 0:
		text += "; no attempt has begun"
	case n > 1:
		text += fmt.Sprintf("; %d attempts have begun", n)
	}
	if s.RepeatOf != "" {
		text += ". The same call was made before in this run"
	}
	return text + "."
}

func ordinal(n int) string {
	switch {
	case n%10 == 1 && n%100 != 11:
		return fmt.Sprintf("%dst", n)
	case n%10 == 2 && n%100 != 12:
		return fmt.Sprintf("%dnd", n)
	case n%10 == 3 && n%100 != 13:
		return fmt.Sprintf("%drd", n)
	}
	return fmt.Sprintf("%dth", n)
}

// notKnown says what nobody knows yet.
func notKnown(r *request, s subject) (led, text string) {
	switch s.State {
	case "interrupted":
		led = "We do not know whether it happened."
		switch n := len(s.Attempts); {
		case s.Why == "undone":
			text = "A decision was taken back, so it is open again."
		case s.Why == "hit":
			text = "Something was found at the downstream after it was decided, so it is open again."
		case s.Why == "log_gap", n == 0:
			text = "No attempt is on record, but one may have been made that this database does not hold."
		case s.Why == "unknown":
			text = "The agent came back and could not say itself. Its request may have arrived."
		default:
			a := s.Attempts[n-1]
			text = fmt.Sprintf("The intent was recorded at %s. %s stopped answering before it could say how it went.", r.at(a.BegunAt).Text, orSomebody(a.Worker))
		}
		text += whoFindsOut(r, s)
	case "held":
		led = "It has not started."
		text = "Another effect has the same business key, so it may be the same action a second time. A person says whether it is."
		if s.Why == "no_business_key" {
			text = "Its business key is incomplete, so nothing can tell whether it was done before. A person says whether it may run."
		}
	case "in_flight":
		led, text = "An attempt is under way.", "Its worker has until "+r.at(lastDeadline(s)).Text+" to send it and to say how it went."
	}
	return led, text
}

// whoFindsOut says what an effect waits for whose outcome nobody knows.
func whoFindsOut(r *request, s subject) string {
	if s.Blind {
		return " The run is paused and will not go on by itself. This tool has no look-up: only a person can find out."
	}
	text := " The run is paused until the downstream proves it, or a person decides."
	if !s.looks.EndedAt.IsZero() {
		text = " The run is paused until a person finds out: look-ups ended without proof."
	}
	if l := s.looks.Last(); l != nil {
		text += " The downstream, asked at " + r.at(l.AskedAt).Text + ": " + l.Says() + "."
	}
	return text
}

func lastDeadline(s subject) time.Time {
	if n := len(s.Attempts); n > 0 {
		return s.Attempts[n-1].Deadline
	}
	return time.Time{}
}

func orSomebody(worker string) string {
	if worker == "" {
		return "Its worker"
	}
	return worker
}

// conditions are what must hold before "not taken" can be sure, met or not.
func conditions(r *request, s subject) (list []views.Condition) {
	if deadline := lastDeadline(s); !deadline.IsZero() {
		met := deadline.Before(r.now)
		text := "No attempt can send its request any more (" + r.at(deadline).Text + ")"
		if !met {
			text = "An attempt may still send its request, until " + r.at(deadline).Text
		}
		list = append(list, views.Condition{Met: met, Text: text})
	}
	if _, declared := s.tool.LandsWithin(); !declared {
		list = append(list, views.Condition{Text: "How long a sent request may still land is not declared for this tool: that it is absent proves nothing by itself"})
	} else if !s.Moment.IsZero() {
		met := s.Moment.Before(r.now)
		text := "Nothing that was sent can land any more (since " + r.at(s.Moment).Text + ")"
		if !met {
			text = "Something that was sent may still land, until " + r.at(s.Moment).Text
		}
		list = append(list, views.Condition{Met: met, Text: text})
	}
	if s.Blind {
		list = append(list, views.Condition{Text: "No look-up can be asked: you are the evidence"})
	}
	return list
}
