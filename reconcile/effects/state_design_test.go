package effects

import "testing"

// outcome is what section 3 of the design says about a pair.
type outcome struct {
	to            State
	why           Why // of cleared; the reasons of interrupted and held are only told to people
	by            By
	from          State
	used          bool
	released      bool
	attempt       bool
	contradiction bool
	reply         Reply
	refused       bool // does not fit: whoever asked is told so
}

// design is section 3 of the design written again, by hand and from its words: the
// state first, as a reader would look a case up, where table.go goes by event. Each
// case cites its row. It must not be made from table.go.
func design(f Facts, e Event) outcome {
	unchanged := outcome{to: f.State, why: f.Why, by: f.By, from: f.From, used: f.Used, released: f.Released}
	contradiction := unchanged
	contradiction.contradiction = true
	refused := unchanged
	refused.refused = true

	interrupted := outcome{to: Interrupted}
	held := outcome{to: Held}
	// "takes its claim again, else held"
	again := func() outcome {
		if e.ClaimLost {
			return held
		}
		return interrupted
	}
	paused := func(o outcome) outcome { o.reply = ReplyPaused; return o }
	// "any to taken, while another begun effect that is not failed or cancelled holds the claim": contradiction
	byAgent := func(s State, by By) outcome {
		return outcome{to: s, by: by, used: true, released: true, contradiction: s == Taken && (e.TwoClaim || e.TwoObjects)}
	}
	decided := func(s State, why Why, by By, from State) outcome {
		return outcome{to: s, why: why, by: by, from: from, released: by != ByPerson, contradiction: s == Taken && (e.TwoClaim || e.TwoObjects) && e.Verdict != VerdictSameAs}
	}
	answered := func(r Reply) outcome { // "used = a begin was answered from it"
		o := unchanged
		o.used, o.from, o.reply = true, None, r
		return o
	}

	last := !e.Earlier && !e.Stray // "fence matches", "by the last attempt"
	saysTaken := e.Kind == KFinish && e.Word == WordTaken
	saysFailed := e.Kind == KFinish && (e.Word == WordFailed || e.Word == WordUnknown && e.Refusal)
	lookup := e.Kind == KLookup

	// "An effect with no attempt: no look-up decides it, except in a log gap" (lookups.md).
	if lookup && f.Attempts == 0 && !f.Gap {
		return unchanged
	}
	if lookup && e.AskedEarly {
		// "A look-up speaks for the attempts begun before it was asked; once a later one has
		// begun, only more than one hit contradicts." A hit still withdraws a permission.
		o := unchanged
		if f.State == Cleared && (f.Why == WhyNotTaken && e.Hit || f.Why == WhySameKey && (e.Many || e.Found == FoundTaken)) {
			o = interrupted
		}
		o.contradiction = e.Many
		return o
	}
	// "any with a later attempt begun: evidence taken for an earlier one, not the one object
	// of the same vendor key": contradiction, an unused permission is withdrawn.
	if saysTaken && e.Earlier && !e.OneOf && f.State != None {
		if f.State == Cleared {
			interrupted.contradiction = true
			return interrupted
		}
		return contradiction
	}

	// "A log file carries an intent": nobody was asked (docs/effects_jsonl.md).
	if e.Kind == KIntent {
		open := f.State == InFlight || f.State == Interrupted
		switch {
		case f.State == None:
			return outcome{to: InFlight, attempt: true}
		case open && !e.SameAttempt && e.Permitted: // somebody else's word: one more attempt, as unknown as before
			return outcome{to: f.State, attempt: true}
		case open && e.SameAttempt: // a line of ours let it run
			return unchanged
		case open, f.State == Held, f.State == Cleared:
			interrupted.attempt, interrupted.contradiction = true, true
			return interrupted
		}
		return contradiction
	}

	switch f.State {
	case None:
		if e.Kind != KBegin {
			return unchanged // "finish: kept as finish without an intent"
		}
		switch {
		case e.LogGap || e.Kept || e.Observed: // "log gap, or a kept finish for the key"; goes before overlap, section 6. So does a call that was observed
			return paused(interrupted)
		case e.ClaimTaken || e.NoKey: // "overlap, or key missing"
			return paused(held)
		}
		return outcome{to: InFlight, attempt: true, reply: ReplyProceed} // "business key free or ours"

	case InFlight:
		switch e.Kind {
		case KTime, KGap: // "deadline passed, or lease passed or released"; a gap, section 6
			return interrupted
		case KBegin:
			o := unchanged
			o.reply = ReplyInFlight // "same lease, other attempt_id"
			if e.SameLease && e.SameAttempt {
				o.reply = ReplyAgain // "same lease, same attempt_id"
			}
			return o
		case KFinish:
			switch {
			case !last:
				return unchanged // "a finish after the fact is always kept as evidence"
			case saysTaken && e.RefOwned: // "one record never proves two effects"
				return interrupted
			case saysTaken: // "finish taken / failed, fence matches"
				return byAgent(Taken, ByAgent)
			case saysFailed: // "where the refusal rule matches: failed"
				return byAgent(Failed, ByAgent)
			}
			return interrupted // "finish unknown, or any other word"
		}

	case Interrupted:
		switch {
		case e.Kind == KBegin:
			return paused(unchanged)
		case lookup && e.Found == FoundTaken: // "look-up proves taken / not taken"
			return decided(Taken, WhyNone, ByLookup, Interrupted)
		case lookup && e.Found == FoundNotTaken:
			return decided(Cleared, WhyNotTaken, ByLookup, Interrupted)
		case e.Kind == KSameKey && f.Attempts > 0 && !f.Gap && !e.KeyDead && !e.Hit: // "the vendor's own key makes a repeat safe"
			return decided(Cleared, WhySameKey, ByVendorKey, Interrupted)
		case saysTaken && last && e.RefOwned:
			return interrupted
		case saysTaken && last: // "finish by the last attempt, late"
			return byAgent(Taken, ByLateAgent)
		case saysFailed && last:
			return byAgent(Failed, ByLateAgent)
		case e.Kind == KPerson && e.Verdict == VerdictTaken: // "person: taken / not_taken / stop"
			return decided(Taken, WhyNone, ByPerson, Interrupted)
		case e.Kind == KPerson && e.Verdict == VerdictNotTaken:
			return decided(Cleared, WhyNotTaken, ByPerson, Interrupted)
		case e.Kind == KPerson && e.Verdict == VerdictStop:
			return decided(Cancelled, WhyNone, ByPerson, Interrupted)
		}

	case Held:
		switch {
		case e.Kind == KBegin:
			return paused(unchanged)
		case e.Kind == KGap:
			return interrupted
		case e.Kind == KPerson && e.Verdict == VerdictAllow && e.OverlapsClosed: // "person: allow / same_as / stop"
			return decided(Cleared, WhyAllowed, ByPerson, Held)
		case e.Kind == KPerson && e.Verdict == VerdictSameAs && e.OtherTaken:
			return decided(Taken, WhyNone, ByPerson, Held)
		case e.Kind == KPerson && e.Verdict == VerdictStop:
			return decided(Cancelled, WhyNone, ByPerson, Held)
		}

	case Cleared:
		origin := Interrupted // "never a permission: interrupted, held if it was allowed"
		if f.Why == WhyAllowed {
			origin = Held
		}
		switch {
		case e.Kind == KGap:
			return interrupted
		case e.Kind == KExpire && f.Released: // "24 h after the run could resume: interrupted, held if allowed"
			return outcome{to: origin}
		case e.Kind == KBegin && !f.Released: // "a decision counts once released"
			return paused(unchanged)
		case e.Kind == KBegin && f.Why == WhySameKey && e.KeyDead: // "else interrupted"
			return paused(interrupted)
		case e.Kind == KBegin && e.Observed: // it may have been performed meanwhile, and nobody knows
			return paused(interrupted)
		case e.Kind == KBegin && e.ClaimTaken: // "its claim is still its own (else held)"
			return paused(held)
		case e.Kind == KBegin:
			return outcome{to: InFlight, attempt: true, reply: ReplyProceed}
		case saysTaken && last && !e.RefOwned: // "finish taken by the last attempt"
			return byAgent(Taken, ByLateAgent)
		case saysTaken && f.Why != WhyAllowed: // "evidence taken other than the last attempt's finish", or that proves another
			return interrupted
		case lookup && f.Why == WhyNotTaken && e.Hit: // "for not_taken any hit"
			return interrupted
		case lookup && f.Why == WhySameKey && (e.Found == FoundTaken || e.Many): // a double says that the key is not kept
			return interrupted
		case e.Kind == KPerson && e.Verdict == VerdictTaken: // "person: taken / stop"
			return decided(Taken, WhyNone, ByPerson, origin)
		case e.Kind == KPerson && e.Verdict == VerdictStop:
			return decided(Cancelled, WhyNone, ByPerson, origin)
		case e.Kind == KClose && f.Released && f.Why != WhySameKey: // "close is refused while one is cleared for same_key"
			return outcome{to: Cancelled, by: ByRunClosed, used: true, released: true}
		case e.Kind == KUndo && f.By != ByVendorKey: // "decided by a person or look-up, unused: undo"
			if e.ClaimLost {
				return held
			}
			return outcome{to: origin}
		case e.Kind == KReopen && !f.Released && f.By == ByPerson && f.Why == WhyNotTaken && (f.Attempts > 0 || f.Gap):
			return again() // section 5: "any hit that the decision did not name as not ours stops it"
		case e.Kind == KWithdraw && f.Why == WhyAllowed: // section 4: "an unused allow that it overlaps is withdrawn"
			return held
		case e.Kind == KRelease && !f.Released:
			o := unchanged
			o.released = true
			return o
		}

	case Taken:
		unused := !f.Used && anyOf(f.By, ByLookup, ByPerson)
		switch {
		case e.Kind == KBegin && f.Released: // "replay"
			return answered(ReplyReplay)
		case e.Kind == KBegin:
			return paused(unchanged)
		case e.Kind == KClose && f.Released:
			return answered(ReplyNone)
		case (saysTaken || lookup) && e.OtherRef, lookup && e.Many: // "another reference, or more than one free hit"
			return contradiction
		case f.SameAs && (lookup || e.Kind == KFinish):
			return unchanged // it says itself that nothing of its own took effect
		case (lookup && e.Found == FoundNotTaken || saysFailed && last) && unused:
			return again() // "taken by look-up or person, unused: interrupted"
		case (lookup && e.Found == FoundNotTaken || saysFailed && last) && f.Used: // "taken, used: the same"
			return contradiction
		case e.Kind == KUndo && unused:
			if e.ClaimLost {
				return held
			}
			return outcome{to: f.From}
		case e.Kind == KRelease && !f.Released:
			o := unchanged
			o.released = true
			return o
		}
		if lookup { // "money came back: a later event, shown"
			return unchanged
		}

	case Failed:
		switch {
		case e.Kind == KBegin:
			return answered(ReplyReplay)
		case e.Kind == KClose:
			return answered(ReplyNone)
		case saysTaken, lookup && (e.Found == FoundTaken || e.Many): // "evidence taken, or more than one free hit"
			return contradiction
		}

	case Cancelled:
		unused := f.By == ByPerson && !f.Used
		switch {
		case e.Kind == KBegin && f.Released: // "409 effect_cancelled"
			return answered(ReplyCancelled)
		case e.Kind == KBegin:
			return paused(unchanged)
		case e.Kind == KClose && f.Released:
			return answered(ReplyNone)
		case lookup && e.Many: // used or not: several hits prove nothing, so nothing is reopened
			return contradiction
		case (saysTaken || lookup && e.Found == FoundTaken) && unused: // "cancelled by a person, unused: interrupted"
			o := again()
			o.contradiction = e.ClaimLost && e.TwoClaim // it may have happened twice
			return o
		case saysTaken, lookup && e.Found == FoundTaken:
			return contradiction
		case e.Kind == KUndo && unused:
			if e.ClaimLost {
				return held
			}
			return outcome{to: f.From}
		case e.Kind == KReopen && !f.Released && (f.Attempts > 0 || f.Gap):
			return again()
		case e.Kind == KRelease && !f.Released:
			o := unchanged
			o.released = true
			return o
		}
	}
	if lookup || e.Kind == KFinish {
		return unchanged // "any other pair: evidence appended"
	}
	return refused
}

func TestTableIsTheDesign(t *testing.T) {
	t.Parallel()
	eachPair(t, true, func(p pair) string {
		want, to := design(p.f, p.e), p.after()
		got := outcome{to: to.State, by: to.By, from: to.From, used: to.Used, released: to.Released, attempt: p.m.Attempt,
			contradiction: p.m.Contradiction != "", reply: p.m.Reply, refused: p.m.Refused}
		if to.State == Cleared {
			got.why = to.Why
		} else {
			want.why = WhyNone
		}
		if got != want {
			return "the design says otherwise"
		}
		return ""
	})
}

// The reasons of interrupted and held are what an operator reads first.
func TestReasonsToldToPeople(t *testing.T) {
	t.Parallel()
	unknown := Facts{State: Interrupted, Why: WhyDeadline, Attempts: 1}
	flying := Facts{State: InFlight, Attempts: 1}
	notTaken := Facts{State: Cleared, Why: WhyNotTaken, By: ByPerson, From: Interrupted, Released: true, Attempts: 1}
	sameKey := Facts{State: Cleared, Why: WhySameKey, By: ByVendorKey, From: Interrupted, Released: true, Attempts: 1}
	allowed := Facts{State: Cleared, Why: WhyAllowed, By: ByPerson, From: Held, Released: true}
	stopped := Facts{State: Cancelled, By: ByPerson, From: Interrupted, Attempts: 1}
	taken := Facts{State: Taken, By: ByPerson, From: Interrupted, Attempts: 1}
	for _, c := range []struct {
		name string
		f    Facts
		e    Event
		to   State
		why  Why
	}{
		{"deadline", flying, Event{Kind: KTime}, Interrupted, WhyDeadline},
		{"lease", flying, Event{Kind: KTime, Lease: true}, Interrupted, WhyLease},
		{"the agent does not know", flying, Event{Kind: KFinish, Word: WordUnknown}, Interrupted, WhyUnknown},
		{"its reference proves another", flying, Event{Kind: KFinish, Word: WordTaken, RefOwned: true}, Interrupted, WhyReference},
		{"its reference proves another, late", unknown, Event{Kind: KFinish, Word: WordTaken, RefOwned: true}, Interrupted, WhyReference},
		{"log gap", flying, Event{Kind: KGap}, Interrupted, WhyLogGap},
		{"begun in a log gap, and a finish is kept", Facts{}, Event{Kind: KBegin, LogGap: true, Kept: true}, Interrupted, WhyLogGap},
		{"a finish is kept", Facts{}, Event{Kind: KBegin, Kept: true, ClaimTaken: true}, Interrupted, WhyKeptFinish},
		{"it was observed", Facts{}, Event{Kind: KBegin, Observed: true, ClaimTaken: true}, Interrupted, WhyObserved},
		{"it was observed, and a finish is kept", Facts{}, Event{Kind: KBegin, Observed: true, Kept: true}, Interrupted, WhyKeptFinish},
		{"it was observed since it was cleared", notTaken, Event{Kind: KBegin, Observed: true, ClaimTaken: true}, Interrupted, WhyObserved},
		{"key missing", Facts{}, Event{Kind: KBegin, NoKey: true, ClaimTaken: true}, Held, WhyNoBusinessKey},
		{"overlap", Facts{}, Event{Kind: KBegin, ClaimTaken: true}, Held, WhyOverlap},
		{"claim lost before the begin", notTaken, Event{Kind: KBegin, ClaimTaken: true}, Held, WhyOverlap},
		{"the vendor's key is too old", sameKey, Event{Kind: KBegin, KeyDead: true, ClaimTaken: true}, Interrupted, WhyKeyLife},
		{"not used in time", notTaken, Event{Kind: KExpire}, Interrupted, WhyExpired},
		{"an allow not used in time", allowed, Event{Kind: KExpire}, Held, WhyExpired},
		{"a hit", notTaken, Event{Kind: KLookup, Hit: true}, Interrupted, WhyHit},
		{"a hit before release", stopped, Event{Kind: KReopen}, Interrupted, WhyHit},
		{"a hit before release, claim gone", stopped, Event{Kind: KReopen, ClaimLost: true}, Held, WhyOverlap},
		{"an earlier attempt speaks up", notTaken, Event{Kind: KFinish, Word: WordTaken, Earlier: true}, Interrupted, WhyContradicted},
		{"a stopped one was taken", stopped, Event{Kind: KFinish, Word: WordTaken}, Interrupted, WhyContradicted},
		{"a taken one failed", taken, Event{Kind: KFinish, Word: WordFailed}, Interrupted, WhyContradicted},
		{"undo", taken, Event{Kind: KUndo}, Interrupted, WhyUndone},
		{"undo of an allow", allowed, Event{Kind: KUndo}, Held, WhyUndone},
		{"what an allow overlaps was reopened", allowed, Event{Kind: KWithdraw}, Held, WhyOverlap},
	} {
		if m := Next(c.f, c.e); m.To != c.to || m.Why != c.why {
			t.Errorf("%s: %s (%s), want %s (%s)", c.name, m.To, m.Why, c.to, c.why)
		}
	}
}
