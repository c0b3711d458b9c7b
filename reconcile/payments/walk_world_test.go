package payments_test

import (
	"strings"

	rows "quittance/ledger/payments"
	"quittance/reconcile/effects"
	"quittance/reconcile/payments"
)

// chain moves an authorization on.
func (k *walk) chain(s *signature) {
	n := s.n - k.base
	switch pick := k.r.IntN(4); {
	case s.dead || s.final || !s.signed:
	case s.mined && pick == 0 && !s.dropped:
		s.mined, s.dropped, s.sent = false, true, true
		k.tell("a reorganisation drops %d", n)
	case s.mined:
		s.final = true
		k.tell("%d is final", n)
	case s.sent && pick > 0:
		s.mined = true
		k.tell("%d lands", n)
	case k.rogue && pick == 1 && k.seen(n):
		s.sent = true
		k.tell("somebody sends %d", n)
	case pick == 0:
		s.dead = true
		k.tell("%d is cancelled", n)
	}
}

func (k *walk) moved(i int) payments.Incoming {
	s := k.sigs[i]
	in := k.transfer(s.n, s.n, "4200000")
	if i == signatures {
		in.From = bob
	}
	in.Final = s.final
	return in
}

// reconcile tells of a movement, or that it is gone.
func (k *walk) reconcile(i int) {
	s, in := k.sigs[i], k.moved(i)
	if !s.mined {
		in.Reverted = true
		if known, err := rows.TransferAt(k.t.Context(), k.db, network, in.Tx, 0); err != nil || known == nil || known.Reverted() {
			return
		}
	}
	m, err := k.Shown(k.t.Context(), in)
	if err != nil {
		k.wrong("posting %d: %v", i, err)
	}
	k.tell("transfer of %d is %s, reverted %v", i, m.Transfer.Class, m.Transfer.Reverted())
}

func (k *walk) ageing(id string) {
	if p := k.known(id); p == nil || p.State != "in_flight" && p.State != "unknown" {
		return
	}
	k.age(id, old)
	k.tell("%s is old", id[len(id)-1:])
}

// decide lets it be found out what became of work that nobody heard of.
func (k *walk) decide(id string) {
	p := k.known(id)
	if p == nil || p.Work == nil || p.Work.State != "in_flight" && p.Work.State != "interrupted" {
		return
	}
	k.exec(`UPDATE effects SET deadline = clock_timestamp() - interval '1 hour', moment = clock_timestamp() - interval '1 hour' WHERE id = $1::uuid`, p.Work.EffectID)
	k.exec(`UPDATE runs SET lease_until = clock_timestamp() - interval '1 millisecond' WHERE run_id = $1 AND lease_until IS NOT NULL`, payments.RunName(k.gateway, id))
	if k.performed[id] > 0 {
		_, err := k.effects.Apply(k.t.Context(), []effects.Op{{Finish: &effects.Finish{Account: k.account, EffectID: p.Work.EffectID, Fence: p.Work.Fence, Outcome: "taken"}}})
		k.tell("the work of %s is heard of: %v", id[len(id)-1:], err)
		return
	}
	k.lapse(p.Work.EffectID)
	var version int64
	k.get(&version, `SELECT version FROM effects WHERE id = $1::uuid`, p.Work.EffectID)
	got, err := k.effects.Decide(k.t.Context(), k.person_(), []effects.Decide{{EffectID: p.Work.EffectID, Version: version, Verdict: effects.VerdictNotTaken, Note: "looked", Evidence: "nothing there"}})
	if err != nil || got[0].Refusal != nil {
		k.wrong("deciding: %v %+v", err, got)
	}
	k.looping(func() bool {
		var released bool
		k.get(&released, `SELECT released FROM effects WHERE id = $1::uuid`, p.Work.EffectID)
		return released
	})
	k.tell("the work of %s was not done", id[len(id)-1:])
}

func (k *walk) person_() effects.Person { return k.world.person }

// check lets the rail be asked, and time be looked at; expire lets orders be over too.
func (k *walk) check(expire bool) {
	for i, s := range k.sigs {
		switch {
		case s.dead:
			k.rail.say(nonce(s.n), payments.Sight{Dead: "cancelled", DeadBlock: 9, Said: "cancelled"})
		case s.final:
			x := k.landed(s.n, s.n, "4200000")
			if i == signatures {
				x.Landed.Sender = bob
			}
			k.rail.say(nonce(s.n), x)
		default:
			k.rail.say(nonce(s.n), payments.Sight{})
		}
	}
	k.exec(`UPDATE payments SET check_at = clock_timestamp(), checking_until = NULL WHERE payment_id = ANY($1::text[]) AND check_at IS NOT NULL`, "{"+strings.Join(k.ids, ",")+"}")
	if expire {
		k.exec(`UPDATE orders SET expires_at = created_at + interval '1 microsecond' WHERE payment IN (SELECT id FROM payments WHERE payment_id = ANY($1::text[])) AND state IN ('created','paying')`, "{"+strings.Join(k.ids, ",")+"}")
	}
	if err := k.Tick(k.t.Context()); err != nil {
		k.wrong("the loops: %v", err)
	}
	k.tell("the loops run, expire %v", expire)
}

// person does what people do: gives back what nobody can place, cancels, or waits a month.
func (k *walk) person() {
	ctx := k.t.Context()
	switch k.r.IntN(3) {
	case 0:
		var list []string
		if err := k.db.Select(ctx, &list, `SELECT id::text FROM transfers WHERE class IN ('unmatched','under') AND reverted_at IS NULL`); err != nil {
			k.t.Fatal(err)
		}
		for _, id := range list {
			_, err := k.GiveBack(ctx, k.byHand(id, ""))
			k.tell("a person gives a transfer back: %v", err)
		}
	case 1:
		id := k.ids[k.r.IntN(2)]
		_, err := k.Cancel(ctx, k.name(id))
		if _, refused := asRefusal(err); err != nil && !refused {
			k.wrong("cancel: %v", err)
		}
		k.tell("%s is cancelled: %v", id[len(id)-1:], err == nil)
	case 2:
		if k.pruned {
			return
		}
		k.pruned = true
		k.exec(`UPDATE payments SET ended_at = ended_at - interval '40 days' WHERE payment_id = ANY($1::text[]) AND ended_at IS NOT NULL`, "{"+strings.Join(k.ids, ",")+"}")
		if err := k.Prune(ctx); err != nil {
			k.wrong("prune: %v", err)
		}
		k.tell("a month passes")
	}
}
