package payments

import (
	"fmt"
	"testing"
	"time"
)

// ages around the one from which a payment is old.
var ages = []time.Duration{0, 179_900 * time.Millisecond, 180 * time.Second, 180_100 * time.Millisecond, 48 * time.Hour}

// each calls f with every combination of what may be stored and who may ask. Of an id that
// was never claimed nothing is stored.
func each(f func(Facts, Caller)) {
	bools := []bool{false, true}
	for _, state := range append([]State{None}, States...) {
		for _, order := range []Order{NoOrder, NotFinal, Paid, Unpaid} {
			for _, age := range ages {
				for _, work := range []Work{NoWork, Undecided, Taken, NotTaken} {
					for _, auth := range []Authorizations{NoAuthorization, AllDead, SomeUsable} {
						for _, brings := range []Brings{Nothing, StoredOne, AnotherDead, Another} {
							for _, where := range []Elsewhere{Nowhere, LiveElsewhere, SettledOnce, AnotherPayers} {
								for bits := range 32 {
									if state == None && (order != NoOrder || age != 0 || work != NoWork || auth != NoAuthorization || bits&3 != 0) {
										continue
									}
									f(Facts{state, order, age, work, bools[bits&1], auth, bools[bits>>1&1]},
										Caller{bools[bits>>2&1], bools[bits>>3&1], bools[bits>>4&1], brings, where})
								}
							}
						}
					}
				}
			}
		}
	}
}

// What must hold of every answer, whatever is stored and whoever asks. Each line is a way
// to pay twice, or to tell somebody what is not theirs.
func TestEveryAnswerIsSafe(t *testing.T) {
	t.Parallel()
	n := 0
	each(func(f Facts, c Caller) {
		n++
		d := Decide(f, c)
		wrong := func(what string) { t.Fatalf("%s: %+v %+v gives %+v", what, f, c, d) }
		old := f.Age > HealAfter
		sent := f.Broadcast || f.Authorizations == SomeUsable // may have moved money, or still may
		switch {
		case d.Row == "" || d.Do == "":
			wrong("no answer")
		case f.State != None && !c.SamePayer && (d.ShowOrder || d.Do != Conflict || d.Reason != ReasonPayer || !d.Alert):
			wrong("another payer is told more than that it is not theirs")
		case f.State != None && c.SamePayer && !c.SameRequest && (d.Do != Conflict || d.Reason != ReasonRequest):
			wrong("another request under the same id")
		case d.Row == "same attempt":
			if !c.SameAttempt || c.Brings == Another || c.Brings == AnotherDead || !c.SamePayer || !c.SameRequest || f.State != InFlight || old || f.Broadcast || f.Work != NoWork || d.changes() || d.Paid != (f.Order == Paid) {
				wrong("an answer given again to somebody else, or after something was done with it")
			}
		case d.Do == Proceed && f.State != None && !old:
			wrong("taken over too soon")
		case d.Do == Proceed && f.State != None && !d.TakeOver || d.TakeOver && d.Claim || d.Claim && f.State != None:
			wrong("a take-over without a new fence")
		case d.Do == Proceed && (f.State == Settled || f.State == Refused || f.State == Pruned):
			wrong("a closed payment runs again")
		case d.Do == Proceed && f.Work == Undecided && !(f.Broadcast && f.BroadcastFollowsWork):
			wrong("work that may have been done is done again")
		case d.TakeOver && f.Work == Taken && d.Work != Taken:
			wrong("work that was done is not said to be")
		case d.TakeOver && !d.Paid && f.Authorizations != AllDead && f.Broadcast:
			wrong("sent again after a broadcast that may still land")
		case d.TakeOver && !d.Paid && f.Authorizations == SomeUsable && (c.Brings == Another || c.Brings == AnotherDead):
			wrong("a second authorization while the first may still be used")
		case d.TakeOver && d.Paid != (f.Order == Paid):
			wrong("paid is not what the order says")
		case d.Do == SignAgain && (f.Authorizations != AllDead || f.Order == Paid || !old):
			wrong("402 while money may still move")
		case d.Heal && (f.Order != Paid || !old):
			wrong("healed without a paid order")
		case d.Refuse && (f.Order != Unpaid || sent && f.Authorizations == SomeUsable):
			wrong("refused while money may still move")
		case d.Unknown && f.State != InFlight:
			wrong("it is not in flight")
		case d.Do == Replay && !d.Heal && !d.Refuse && f.State != Settled && f.State != Refused:
			wrong("nothing is stored to be replayed")
		case d.Do == Wait && (d.Retry <= 0 || !d.ShowOrder):
			wrong("a wait without a way on")
		case d.Do == Proceed && c.Elsewhere != Nowhere && (d.Claim || c.Brings == Another || c.Brings == AnotherDead):
			wrong("an authorization of another id")
		case d.Elsewhere && c.Elsewhere == AnotherPayers && d.ShowOrder:
			wrong("another payer's order is shown")
		}
	})
	if n != 5*4*5*4*3*4*4*32+4*4*8 {
		t.Errorf("%d combinations", n)
	}
}

// The table of the design, row by row, in its order.
func TestTheTable(t *testing.T) {
	t.Parallel()
	const young, old = 180 * time.Second, 180_100 * time.Millisecond
	own := Caller{SamePayer: true, SameRequest: true}
	same := Caller{SamePayer: true, SameRequest: true, SameAttempt: true}
	with := func(c Caller, b Brings) Caller { c.Brings = b; return c }
	at := func(c Caller, e Elsewhere) Caller { c.Elsewhere = e; return c }
	for i, x := range []struct {
		f    Facts
		c    Caller
		want string
	}{
		{Facts{}, own, "proceed: new"},
		{Facts{}, at(own, LiveElsewhere), "in_flight: elsewhere"},
		{Facts{}, at(own, SettledOnce), "conflict: elsewhere"},
		{Facts{}, at(own, AnotherPayers), "conflict: elsewhere"},
		{Facts{State: Settled}, Caller{SameRequest: true}, "conflict: other payer"},
		{Facts{State: Settled}, Caller{}, "conflict: other payer"},
		{Facts{State: Settled}, Caller{SamePayer: true}, "conflict: other request"},
		{Facts{State: Pruned}, own, "spent: pruned"},
		{Facts{State: Settled}, own, "replay: settled"},
		{Facts{State: Refused}, own, "replay: refused"},
		{Facts{State: InFlight, Age: young, Order: Paid, Work: Taken}, own, "in_flight: young"},
		{Facts{State: InFlight, Age: young, Work: NoWork, Authorizations: SomeUsable}, with(same, StoredOne), "proceed: same attempt"},
		{Facts{State: InFlight, Age: young, Work: NoWork, Authorizations: SomeUsable}, with(same, Another), "in_flight: young"},
		{Facts{State: InFlight, Age: old, Order: Paid, Work: Taken}, own, "replay: healed"},
		{Facts{State: Unknown, Age: old, Order: Paid, Work: Taken}, own, "replay: healed"},
		{Facts{State: InFlight, Age: old, Order: Paid, Work: Undecided, Broadcast: true, BroadcastFollowsWork: true}, own, "replay: healed"},
		{Facts{State: InFlight, Age: old, Order: Paid, Work: Undecided}, own, "in_flight: work undecided"},
		{Facts{State: InFlight, Age: old, Order: NotFinal, Work: Undecided, Broadcast: true}, own, "in_flight: work undecided"},
		{Facts{State: InFlight, Age: old, Order: Paid, Work: NoWork}, own, "proceed: paid, not done"},
		{Facts{State: Unknown, Age: old, Order: Paid, Work: NotTaken}, own, "proceed: paid, not done"},
		{Facts{State: InFlight, Age: old, Order: Unpaid, Work: NoWork}, own, "replay: never paid"},
		{Facts{State: Unknown, Age: old, Order: Unpaid, Work: NoWork, Authorizations: AllDead}, own, "replay: never paid"},
		{Facts{State: InFlight, Age: old, Order: Unpaid, Work: NoWork, Authorizations: SomeUsable}, own, "in_flight: may have been sent"},
		{Facts{State: Unknown, Age: old, Order: NotFinal, Work: NoWork, Authorizations: AllDead}, own, "sign_again: sign again"},
		{Facts{State: Unknown, Age: old, Order: NotFinal, Work: NoWork, Authorizations: AllDead}, with(own, AnotherDead), "sign_again: sign again"},
		{Facts{State: Unknown, Age: old, Order: NotFinal, Work: NoWork, Authorizations: AllDead}, with(own, Another), "proceed: signed again"},
		{Facts{State: Unknown, Age: old, Order: NotFinal, Work: NoWork, Authorizations: AllDead}, at(with(own, Another), LiveElsewhere), "in_flight: elsewhere"},
		{Facts{State: InFlight, Age: old, Order: NotFinal, Work: Taken, Authorizations: SomeUsable}, own, "proceed: done, not sent"},
		{Facts{State: InFlight, Age: old, Order: NotFinal, Work: Taken, Authorizations: SomeUsable}, with(own, StoredOne), "proceed: done, not sent"},
		{Facts{State: InFlight, Age: old, Order: NotFinal, Work: Taken, Authorizations: SomeUsable}, with(own, Another), "in_flight: done, not sent, another authorization"},
		{Facts{State: InFlight, Age: old, Order: NotFinal, Work: Taken, Broadcast: true, Authorizations: SomeUsable}, own, "in_flight: may have been sent"},
		{Facts{State: InFlight, Age: old, Order: NotFinal, Work: NoWork, Broadcast: true}, own, "in_flight: may have been sent"},
		{Facts{State: InFlight, Age: old, Order: NotFinal, Work: NoWork, Authorizations: SomeUsable}, own, "in_flight: may have been sent"},
		{Facts{State: InFlight, Age: old, Order: NotFinal, Work: NoWork}, own, "proceed: nothing was begun"},
		{Facts{State: InFlight, Age: old, Work: NoWork}, own, "proceed: nothing was begun"},
		{Facts{State: Unknown, Age: old, Order: NotFinal, Work: NoWork, Authorizations: SomeUsable}, own, "in_flight: unknown"},
		{Facts{State: Unknown, Age: young, Order: Paid, Work: Taken}, own, "in_flight: unknown"},
	} {
		d := Decide(x.f, x.c)
		if got := fmt.Sprintf("%s: %s", d.Do, d.Row); got != x.want {
			t.Errorf("%d: %+v %+v: %s, want %s", i, x.f, x.c, got, x.want)
		}
	}
}
