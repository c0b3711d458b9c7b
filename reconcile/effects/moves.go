package effects

// What the rows of the table are made of: guards that several have in common, and moves.

func earlierTaken(f Facts, e Event) bool { return e.Earlier && e.Word == WordTaken && !e.OneOf }

// notLast: by an attempt before the last, or by none that is on record.
func notLast(f Facts, e Event) bool { return e.Earlier || e.Stray }

// againstPermission tells whether a look-up speaks against an unused permission. A
// repeat under the vendor's own key stays safe while something is merely on its way;
// two of them say that the vendor does not keep the key.
func againstPermission(f Facts, e Event) bool {
	switch f.Why {
	case WhyNotTaken:
		return e.Hit || e.Many || e.Found == FoundTaken
	case WhySameKey:
		return e.Many || e.Found == FoundTaken
	}
	return false
}

func refused(f Facts, e Event) bool {
	return e.Word == WordFailed || e.Word == WordUnknown && e.Refusal
}

func wordIs(w Word) func(Facts, Event) bool {
	return func(f Facts, e Event) bool { return e.Word == w }
}

func foundIs(w Found) func(Facts, Event) bool {
	return func(f Facts, e Event) bool { return e.Found == w }
}

func verdictIs(v Verdict) func(Facts, Event) bool {
	return func(f Facts, e Event) bool { return e.Verdict == v }
}

func appended(f Facts, e Event) Move { m := stay(f); m.Kept = true; return m }

func contradict(how Contradiction) func(Facts, Event) Move {
	return func(f Facts, e Event) Move {
		m := stay(f)
		m.Kept, m.Contradiction = true, how
		return m
	}
}

// twice is how a taken contradicts what else is known: that it happened twice.
func twice(e Event) Contradiction {
	switch {
	case e.TwoObjects:
		return EarlierAttemptTaken
	case e.TwoClaim:
		return HeldByAnother
	}
	return ""
}

func reply(f Facts, r Reply) Move { m := stay(f); m.Reply = r; return m }

// use marks an outcome as used: from now on it cannot be taken back.
func use(m Move) Move {
	m.Use = true
	m.From = None
	return m
}

// closed is an agent's own word: used and visible at once.
func closed(s State, by By, e Event) Move {
	return Move{To: s, By: by, Use: true, Release: true, Contradiction: twice(e)}
}

// reopened takes an unused decision back because evidence disagrees with it.
func reopened(f Facts, e Event) Move {
	if e.ClaimLost {
		return Move{To: Held, Why: WhyOverlap}
	}
	return Move{To: Interrupted, Why: WhyContradicted}
}

// stoppedButTaken reopens a stop. Where somebody else has been let through meanwhile,
// it may have happened twice.
func stoppedButTaken(f Facts, e Event) Move {
	m := reopened(f, e)
	if e.ClaimLost && e.TwoClaim {
		m.Contradiction = HeldByAnother
	}
	m.Kept = e.Kind == KFinish && notLast(f, e)
	return m
}

// origin is what undo goes back to: never a permission.
func origin(f Facts) State {
	if f.State == Cleared && f.Why == WhyAllowed || f.From == Held {
		return Held
	}
	return Interrupted
}
