package effects

import store "quittance/ledger/effects"

// table is design section 3, row by row. docs/state_machine.md is written from it
// and compared with it by a test. The order matters: the first match decides.
var table = []row{
	// Time first, by whatever meets it.
	{id: "T1", from: []State{InFlight}, kind: KTime, when: "deadline passed, or lease passed or released",
		to: "interrupted", also: "the run pauses, a look-up is due",
		move: func(f Facts, e Event) Move {
			if e.Lease {
				return Move{To: Interrupted, Why: WhyLease}
			}
			return Move{To: Interrupted, Why: WhyDeadline}
		}},
	{id: "T2", from: []State{Cleared}, kind: KExpire, when: "released, and unused 24 h (policy) after the run could resume",
		guard: func(f Facts, e Event) bool { return f.Released }, to: "interrupted, held if allowed", also: "a standing permit is not one",
		move: func(f Facts, e Event) Move {
			if f.Why == WhyAllowed {
				return Move{To: Held, Why: WhyExpired}
			}
			return Move{To: Interrupted, Why: WhyExpired}
		}},
	{id: "T3", from: []State{InFlight, Held, Cleared}, kind: KGap, when: "a person acknowledges a log gap, or that the log file of its run was changed",
		to: "interrupted", also: "after a log gap fences jump by 1,000,000",
		move: func(f Facts, e Event) Move { return Move{To: Interrupted, Why: WhyLogGap, Gap: true} }},

	// Evidence about an attempt that is not the last one.
	{id: "L1", from: []State{Cleared}, kind: KFinish, when: "taken, by an attempt before the last, not one object of the same vendor key",
		guard: earlierTaken, to: "interrupted", also: "contradiction: recovery suspected, the unused permission is withdrawn; 409 stale_fence",
		move: func(f Facts, e Event) Move {
			return Move{To: Interrupted, Why: WhyContradicted, Contradiction: EarlierAttemptTaken, Kept: true}
		}},
	{id: "L1a", from: []State{Cleared}, kind: KFinish, when: "taken, by any other attempt than the last (one of the same vendor key, or one that a log gap hides); not_taken or same_key",
		guard: func(f Facts, e Event) bool {
			return notLast(f, e) && e.Word == WordTaken && f.Why != WhyAllowed
		}, to: "interrupted", also: "the permission is withdrawn; 409 stale_fence",
		move: func(f Facts, e Event) Move { return Move{To: Interrupted, Why: WhyContradicted, Kept: true} }},
	{id: "L2", from: store.States, kind: KFinish, when: "taken, by an attempt before the last, not one object of the same vendor key",
		guard: earlierTaken, to: "unchanged", also: "contradiction: recovery suspected, the run pauses at its next begin; 409 stale_fence", move: contradict(EarlierAttemptTaken)},
	{id: "L3", from: []State{InFlight, Interrupted, Held, Cleared, Taken}, kind: KFinish, when: "anything else that is not by the last attempt, but for taken with another reference than the one on record",
		guard: func(f Facts, e Event) bool {
			return notLast(f, e) && !(f.State == Taken && e.Word == WordTaken && e.OtherRef)
		}, to: "unchanged", also: "409 stale_fence; kept as evidence", move: appended},
	{id: "L4", from: []State{Cleared}, kind: KLookup, when: "asked before the last attempt began; not_taken: any hit; same_key: taken, or more than one hit",
		guard: func(f Facts, e Event) bool { return e.AskedEarly && againstPermission(f, e) }, to: "interrupted", also: "the permission is withdrawn; contradiction where there is more than one hit",
		move: func(f Facts, e Event) Move {
			m := Move{To: Interrupted, Why: WhyHit}
			if e.Many {
				m.Contradiction = EarlierAttemptTaken
			}
			return m
		}},
	{id: "L5", from: store.States, kind: KLookup, when: "asked before the last attempt began, more than one hit",
		guard: func(f Facts, e Event) bool { return e.AskedEarly && e.Many }, to: "unchanged", also: "contradiction", move: contradict(EarlierAttemptTaken)},
	{id: "L6", from: store.States, kind: KLookup, when: "asked before the last attempt began",
		guard: func(f Facts, e Event) bool { return e.AskedEarly }, to: "unchanged", also: "evidence appended", move: appended},
	{id: "L7", from: store.States, kind: KLookup, when: "never had an attempt, and no log gap hides one",
		guard: func(f Facts, e Event) bool { return f.Attempts == 0 && !f.Gap }, to: "unchanged", also: "evidence appended", move: appended},

	// Begin.
	{id: "B1", from: []State{None}, kind: KBegin, when: "in a log gap, or a kept finish has the key, or the call was made while its tool was only observed",
		guard: func(f Facts, e Event) bool { return e.LogGap || e.Kept || e.Observed }, to: "interrupted", also: "attempt 0; look-up due; the run pauses",
		move: func(f Facts, e Event) Move {
			if e.LogGap {
				return Move{To: Interrupted, Why: WhyLogGap, Gap: true, Reply: ReplyPaused}
			}
			if e.Kept {
				return Move{To: Interrupted, Why: WhyKeptFinish, Gap: true, Reply: ReplyPaused}
			}
			return Move{To: Interrupted, Why: WhyObserved, Gap: true, Reply: ReplyPaused}
		}},
	{id: "B2", from: []State{None}, kind: KBegin, when: "overlaps another effect, or a required business key is missing",
		guard: func(f Facts, e Event) bool { return e.NoKey || e.ClaimTaken }, to: "held", also: "the run pauses",
		move: func(f Facts, e Event) Move {
			if e.NoKey {
				return Move{To: Held, Why: WhyNoBusinessKey, Reply: ReplyPaused}
			}
			return Move{To: Held, Why: WhyOverlap, Reply: ReplyPaused}
		}},
	{id: "B3", from: []State{None}, kind: KBegin, when: "business key free or ours", to: "in_flight", also: "attempt 1",
		move: func(f Facts, e Event) Move { return Move{To: InFlight, Reply: ReplyProceed, Attempt: true} }},
	{id: "B4", from: []State{InFlight}, kind: KBegin, when: "same lease, same attempt_id",
		guard: func(f Facts, e Event) bool { return e.SameLease && e.SameAttempt }, to: "in_flight", also: "the same answer again",
		move: func(f Facts, e Event) Move { return reply(f, ReplyAgain) }},
	{id: "B5", from: []State{InFlight}, kind: KBegin, when: "any other attempt_id", to: "in_flight", also: "409 effect_in_flight",
		move: func(f Facts, e Event) Move { return reply(f, ReplyInFlight) }},
	{id: "B6", from: []State{Held, Interrupted}, kind: KBegin, to: "unchanged", also: "409 run_paused",
		move: func(f Facts, e Event) Move { return reply(f, ReplyPaused) }},
	{id: "B7", from: []State{Cleared, Taken, Cancelled}, kind: KBegin, when: "not released",
		guard: func(f Facts, e Event) bool { return !f.Released }, to: "unchanged", also: "409 run_paused",
		move: func(f Facts, e Event) Move { return reply(f, ReplyPaused) }},
	{id: "B8", from: []State{Cleared}, kind: KBegin, when: "same_key, and the new deadline would outlive the vendor's key",
		guard: func(f Facts, e Event) bool { return f.Why == WhySameKey && e.KeyDead }, to: "interrupted", also: "409 run_paused",
		move: func(f Facts, e Event) Move { return Move{To: Interrupted, Why: WhyKeyLife, Reply: ReplyPaused} }},
	{id: "B8a", from: []State{Cleared}, kind: KBegin, when: "the call was made since the permission was given, while its tool was only observed",
		guard: func(f Facts, e Event) bool { return e.Observed }, to: "interrupted", also: "409 run_paused",
		move: func(f Facts, e Event) Move {
			return Move{To: Interrupted, Why: WhyObserved, Gap: true, Reply: ReplyPaused}
		}},
	{id: "B9", from: []State{Cleared}, kind: KBegin, when: "its claim is not its own any more",
		guard: func(f Facts, e Event) bool { return e.ClaimTaken }, to: "held", also: "409 run_paused",
		move: func(f Facts, e Event) Move { return Move{To: Held, Why: WhyOverlap, Reply: ReplyPaused} }},
	{id: "B10", from: []State{Cleared}, kind: KBegin, when: "released", to: "in_flight", also: "attempt n+1; the permission is used up",
		move: func(f Facts, e Event) Move { return Move{To: InFlight, Reply: ReplyProceed, Attempt: true} }},
	{id: "B11", from: []State{Taken, Failed}, kind: KBegin, when: "released", to: "unchanged", also: "replay; used from now on",
		move: func(f Facts, e Event) Move { return use(reply(f, ReplyReplay)) }},
	{id: "B12", from: []State{Cancelled}, kind: KBegin, when: "released", to: "unchanged", also: "409 effect_cancelled (final); used from now on",
		move: func(f Facts, e Event) Move { return use(reply(f, ReplyCancelled)) }},

	// A log file carries an intent: the attempt has begun, whatever we think of it.
	{id: "W1", from: []State{None}, kind: KIntent, to: "in_flight", also: "attempt 1, also where it overlaps another effect: nobody was asked",
		move: func(f Facts, e Event) Move { return Move{To: InFlight, Attempt: true} }},
	{id: "W2", from: []State{InFlight, Interrupted}, kind: KIntent, when: "of the attempt that an appended line lets run",
		guard: func(f Facts, e Event) bool { return e.SameAttempt }, to: "unchanged", also: "its deadline starts", move: func(f Facts, e Event) Move { return stay(f) }},
	{id: "W3", from: []State{InFlight, Interrupted}, kind: KIntent, when: "a resolved line that is not ours lets it run once more",
		guard: func(f Facts, e Event) bool { return e.Permitted }, to: "in_flight, interrupted if it was", also: "attempt n+1; what became of the one before stays unknown to us",
		move: func(f Facts, e Event) Move {
			if f.State == InFlight {
				return Move{To: InFlight, Attempt: true}
			}
			return Move{To: Interrupted, Why: WhyUnknown, Attempt: true}
		}},
	{id: "W4", from: []State{InFlight, Interrupted, Held, Cleared}, kind: KIntent, when: "nothing lets it run, or not yet", to: "interrupted", also: "attempt n+1; contradiction: it began unasked; an unused permission is withdrawn",
		move: func(f Facts, e Event) Move {
			return Move{To: Interrupted, Why: WhyContradicted, Attempt: true, Contradiction: BegunUnasked}
		}},
	{id: "W5", from: []State{Taken, Failed, Cancelled}, kind: KIntent, to: "unchanged", also: "contradiction: it began unasked", move: func(f Facts, e Event) Move {
		m := stay(f)
		m.Contradiction = BegunUnasked
		return m
	}},

	// Finish by the last attempt.
	{id: "F1", from: []State{InFlight, Interrupted}, kind: KFinish, when: "taken, its reference already proves another effect",
		guard: func(f Facts, e Event) bool { return e.Word == WordTaken && e.RefOwned }, to: "interrupted", also: "one record never proves two effects",
		move: func(f Facts, e Event) Move { return Move{To: Interrupted, Why: WhyReference} }},
	{id: "F2", from: []State{InFlight}, kind: KFinish, when: "taken, fence matches",
		guard: wordIs(WordTaken), to: "taken", also: "by the agent; contradiction while another begun effect holds the claim, or where an earlier attempt has another reference",
		move: func(f Facts, e Event) Move { return closed(Taken, ByAgent, e) }},
	{id: "F3", from: []State{InFlight}, kind: KFinish, when: "failed, or the refusal rule matches; fence matches",
		guard: refused, to: "failed", also: "by the agent",
		move: func(f Facts, e Event) Move { return closed(Failed, ByAgent, Event{}) }},
	{id: "F4", from: []State{InFlight}, kind: KFinish, when: "any other word, fence matches", to: "interrupted", also: "the run pauses, a look-up is due",
		move: func(f Facts, e Event) Move { return Move{To: Interrupted, Why: WhyUnknown} }},
	{id: "F5", from: []State{Interrupted}, kind: KFinish, when: "taken, by the last attempt, late",
		guard: wordIs(WordTaken), to: "taken", also: "decided by late_agent; contradiction while another begun effect holds the claim, or where an earlier attempt has another reference",
		move: func(f Facts, e Event) Move { return closed(Taken, ByLateAgent, e) }},
	{id: "F6", from: []State{Interrupted}, kind: KFinish, when: "failed, or the refusal rule matches; by the last attempt, late",
		guard: refused, to: "failed", also: "decided by late_agent",
		move: func(f Facts, e Event) Move { return closed(Failed, ByLateAgent, Event{}) }},
	{id: "F7", from: []State{Cleared}, kind: KFinish, when: "taken, its reference already proves another effect; not_taken or same_key",
		guard: func(f Facts, e Event) bool { return e.Word == WordTaken && e.RefOwned && f.Why != WhyAllowed }, to: "interrupted", also: "the permission is withdrawn",
		move: func(f Facts, e Event) Move { return Move{To: Interrupted, Why: WhyReference} }},
	{id: "F8", from: []State{Cleared}, kind: KFinish, when: "taken, by the last attempt",
		guard: func(f Facts, e Event) bool { return e.Word == WordTaken && !e.RefOwned }, to: "taken", also: "decided by late_agent; contradiction while another begun effect holds the claim, or where an earlier attempt has another reference",
		move: func(f Facts, e Event) Move { return closed(Taken, ByLateAgent, e) }},
	{id: "F9", from: []State{Taken}, kind: KFinish, when: "taken with another reference",
		guard: func(f Facts, e Event) bool { return e.Word == WordTaken && e.OtherRef }, to: "unchanged", also: "contradiction", move: contradict(OtherReference)},
	{id: "F10", from: []State{Taken}, kind: KFinish, when: "failed by the last attempt; closed by look-up or person, unused, not same_as",
		guard: func(f Facts, e Event) bool {
			return refused(f, e) && !f.Used && anyOf(f.By, ByLookup, ByPerson) && !f.SameAs
		}, to: "interrupted", also: "takes its claim again, else held",
		move: reopened},
	{id: "F11", from: []State{Taken}, kind: KFinish, when: "failed by the last attempt; used, not same_as",
		guard: func(f Facts, e Event) bool { return refused(f, e) && f.Used && !f.SameAs }, to: "unchanged", also: "contradiction", move: contradict(UsedButNotTaken)},
	{id: "F12", from: []State{Failed}, kind: KFinish, when: "taken", guard: wordIs(WordTaken), to: "unchanged", also: "contradiction", move: contradict(FailedButTaken)},
	{id: "F13", from: []State{Cancelled}, kind: KFinish, when: "taken; cancelled by a person, unused",
		guard: func(f Facts, e Event) bool { return e.Word == WordTaken && f.By == ByPerson && !f.Used }, to: "interrupted", also: "takes its claim again, else held; contradiction where another begun effect holds it",
		move: stoppedButTaken},
	{id: "F14", from: []State{Cancelled}, kind: KFinish, when: "taken; used, or cancelled with its run", guard: wordIs(WordTaken), to: "unchanged", also: "contradiction", move: contradict(StoppedButTaken)},

	// Look-up, asked after the last attempt began.
	{id: "K1", from: []State{Interrupted}, kind: KLookup, when: "proves taken", guard: foundIs(FoundTaken), to: "taken", also: "contradiction while another begun effect holds the claim, or where an earlier attempt has another reference",
		move: func(f Facts, e Event) Move {
			return Move{To: Taken, By: ByLookup, From: Interrupted, Release: true, Contradiction: twice(e)}
		}},
	{id: "K2", from: []State{Interrupted}, kind: KLookup, when: "proves not taken", guard: foundIs(FoundNotTaken), to: "cleared (not_taken)",
		move: func(f Facts, e Event) Move {
			return Move{To: Cleared, Why: WhyNotTaken, By: ByLookup, From: Interrupted, Release: true}
		}},
	{id: "K3", from: []State{Cleared}, kind: KLookup, when: "not_taken: any hit; same_key: taken, or more than one hit",
		guard: againstPermission, to: "interrupted", also: "the permission is withdrawn; for allowed a hit is only shown",
		move: func(f Facts, e Event) Move { return Move{To: Interrupted, Why: WhyHit} }},
	{id: "K4", from: []State{Taken}, kind: KLookup, when: "a hit with another reference, or more than one free hit",
		guard: func(f Facts, e Event) bool { return e.Many || e.OtherRef }, to: "unchanged", also: "contradiction", move: contradict(OtherReference)},
	{id: "K5", from: []State{Taken}, kind: KLookup, when: "proves not taken; closed by look-up or person, unused, not same_as",
		guard: func(f Facts, e Event) bool {
			return e.Found == FoundNotTaken && !f.Used && anyOf(f.By, ByLookup, ByPerson) && !f.SameAs
		}, to: "interrupted", also: "takes its claim again, else held", move: reopened},
	{id: "K6", from: []State{Taken}, kind: KLookup, when: "proves not taken; used, not same_as",
		guard: func(f Facts, e Event) bool { return e.Found == FoundNotTaken && f.Used && !f.SameAs }, to: "unchanged", also: "contradiction", move: contradict(UsedButNotTaken)},
	{id: "K7", from: []State{Failed, Cancelled}, kind: KLookup, when: "more than one free hit", guard: func(f Facts, e Event) bool { return e.Many }, to: "unchanged", also: "contradiction", move: contradict(SeveralHits)},
	{id: "K8", from: []State{Cancelled}, kind: KLookup, when: "proves taken; cancelled by a person, unused",
		guard: func(f Facts, e Event) bool { return e.Found == FoundTaken && f.By == ByPerson && !f.Used }, to: "interrupted", also: "takes its claim again, else held; contradiction where another begun effect holds it",
		move: stoppedButTaken},
	{id: "K9", from: []State{Failed, Cancelled}, kind: KLookup, when: "proves taken", guard: foundIs(FoundTaken), to: "unchanged", also: "contradiction",
		move: func(f Facts, e Event) Move {
			if f.State == Cancelled {
				return contradict(StoppedButTaken)(f, e)
			}
			return contradict(FailedButTaken)(f, e)
		}},
	{id: "K10", from: []State{Interrupted}, kind: KSameKey, when: "an attempt is on record and no log gap touches it; the new deadline plus lands_within ends inside the key's life, the last look-up shows no hit",
		guard: func(f Facts, e Event) bool { return f.Attempts >= 1 && !f.Gap && !e.KeyDead && !e.Hit }, to: "cleared (same_key)",
		move: func(f Facts, e Event) Move {
			return Move{To: Cleared, Why: WhySameKey, By: ByVendorKey, From: Interrupted, Release: true}
		}},

	// A person.
	{id: "P1", from: []State{Interrupted}, kind: KPerson, when: "taken", guard: verdictIs(VerdictTaken), to: "taken", also: "released after the hold; contradiction while another begun effect holds the claim, or where an earlier attempt has another reference",
		move: func(f Facts, e Event) Move {
			return Move{To: Taken, By: ByPerson, From: Interrupted, Contradiction: twice(e)}
		}},
	{id: "P2", from: []State{Interrupted}, kind: KPerson, when: "not_taken", guard: verdictIs(VerdictNotTaken), to: "cleared (not_taken)", also: "released after the hold, never before the moment",
		move: func(f Facts, e Event) Move {
			return Move{To: Cleared, Why: WhyNotTaken, By: ByPerson, From: Interrupted}
		}},
	{id: "P3", from: []State{Interrupted, Held}, kind: KPerson, when: "stop", guard: verdictIs(VerdictStop), to: "cancelled", also: "released after the hold, never before the moment; the claim is freed at the release",
		move: func(f Facts, e Event) Move { return Move{To: Cancelled, By: ByPerson, From: f.State} }},
	{id: "P4", from: []State{Held}, kind: KPerson, when: "allow; every overlapping effect that is not itself held is taken, failed, or cancelled and released",
		guard: func(f Facts, e Event) bool { return e.Verdict == VerdictAllow && e.OverlapsClosed }, to: "cleared (allowed)", also: "the business key's claim moves here",
		move: func(f Facts, e Event) Move { return Move{To: Cleared, Why: WhyAllowed, By: ByPerson, From: Held} }},
	{id: "P5", from: []State{Held}, kind: KPerson, when: "same_as; the other effect is taken",
		guard: func(f Facts, e Event) bool { return e.Verdict == VerdictSameAs && e.OtherTaken }, to: "taken", also: "stores the other's id, no reference",
		move: func(f Facts, e Event) Move { return Move{To: Taken, By: ByPerson, From: Held} }},
	{id: "P6", from: []State{Cleared}, kind: KPerson, when: "taken; unused", guard: verdictIs(VerdictTaken), to: "taken", also: "contradiction while another begun effect holds the claim, or where an earlier attempt has another reference",
		move: func(f Facts, e Event) Move {
			return Move{To: Taken, By: ByPerson, From: origin(f), Contradiction: twice(e)}
		}},
	{id: "P7", from: []State{Cleared}, kind: KPerson, when: "stop; unused", guard: verdictIs(VerdictStop), to: "cancelled",
		move: func(f Facts, e Event) Move { return Move{To: Cancelled, By: ByPerson, From: origin(f)} }},
	{id: "P8", from: []State{Cleared, Taken, Cancelled}, kind: KUndo, when: "decided by a person or look-up, unused",
		guard: func(f Facts, e Event) bool { return anyOf(f.By, ByPerson, ByLookup) && !f.Used && f.From != None }, to: "the state it was decided from, never a permission", also: "takes its claim again, else held; history keeps both",
		move: func(f Facts, e Event) Move {
			if e.ClaimLost {
				return Move{To: Held, Why: WhyUndone}
			}
			return Move{To: origin(f), Why: WhyUndone}
		}},
	{id: "P9", from: []State{Cleared, Cancelled}, kind: KReopen, when: "the look-up before release found a hit; unreleased, by a person; not allowed; had an attempt, or a log gap may hide one",
		guard: func(f Facts, e Event) bool {
			return !f.Released && f.By == ByPerson && f.Why != WhyAllowed && (f.Attempts > 0 || f.Gap)
		}, to: "interrupted", also: "takes its claim again, else held",
		move: func(f Facts, e Event) Move {
			if e.ClaimLost {
				return Move{To: Held, Why: WhyOverlap}
			}
			return Move{To: Interrupted, Why: WhyHit}
		}},
	{id: "P10", from: []State{Cleared, Taken, Cancelled}, kind: KRelease, when: "the hold is over, and the moment, and the look-up before release",
		guard: func(f Facts, e Event) bool { return !f.Released }, to: "unchanged", also: "visible to agents; a stop lets its claim go",
		move: func(f Facts, e Event) Move { m := stay(f); m.Release = true; return m }},
	{id: "P11", from: []State{Cleared}, kind: KWithdraw, when: "allowed, and the effect it overlaps was reopened or contradicted",
		guard: func(f Facts, e Event) bool { return f.Why == WhyAllowed }, to: "held", also: "the claim goes back",
		move: func(f Facts, e Event) Move { return Move{To: Held, Why: WhyOverlap} }},

	// The run closes: refused while an effect is open, unreleased, or cleared for same_key.
	{id: "C1", from: []State{Cleared}, kind: KClose, when: "released; not same_key",
		guard: func(f Facts, e Event) bool { return f.Released && f.Why != WhySameKey }, to: "cancelled", also: "by run_closed",
		move: func(f Facts, e Event) Move {
			return Move{To: Cancelled, By: ByRunClosed, Use: true, Release: true}
		}},
	{id: "C2", from: []State{Taken, Failed, Cancelled}, kind: KClose, when: "released",
		guard: func(f Facts, e Event) bool { return f.Released }, to: "unchanged", also: "used from now on",
		move: func(f Facts, e Event) Move { return use(stay(f)) }},
}
