package samples

import (
	"fmt"
	"time"
)

// What is owed back of the month's movements, and how it was paid.

// states of what is owed back, as often as they come in a month.
var states = []string{
	"confirmed", "confirmed", "owed", "confirmed", "sent", "confirmed", "approved", "confirmed", "held", "confirmed", "returned", "confirmed", "written_off",
	"confirmed", "unknown", "owed", "confirmed", "void", "confirmed", "sending", "landed", "owed", "confirmed", "approved",
}

var reasons = []string{"duplicate", "late", "given_back", "over", "failed_call"}

// refunded is a transfer with what is owed back of it, in a state.
func (m *month) refunded(i int, t movement, reason, state string) {
	t.reverted = state == "void" && reason != "over"
	if state == "void" && reason == "over" {
		state = "owed"
	}
	owed := t.amount
	if reason == "over" {
		owed = t.over
	}
	f := figures{state: state, amount: owed}
	switch state {
	case "landed": // paid, and paid once more by a payment that was given up
		f.state, f.paid, f.approved = "confirmed", owed, owed
	case "confirmed":
		f.paid, f.approved = owed, owed
	case "approved":
		f.approved = owed
	case "sending", "sent", "unknown":
		f.approved, f.reserved = owed, owed
	case "written_off":
		f.writtenOff = owed
	case "void":
		f.amount = 0
	}
	changed := t.at.Add(30 * time.Hour)
	if changed.After(m.now) {
		changed = t.at
	}
	id := newID()
	m.bare(t)
	m.refund(id, t, f, reason, changed)
	revenue := int64(0)
	if t.class == "applied" {
		revenue = t.amount - t.over
	}
	m.post(t, t.at, side{"incoming", t.amount}, side{"revenue", -revenue}, side{"refund_owed", revenue - t.amount})
	if t.reverted {
		m.post(t, changed, side{"incoming", -t.amount}, side{"refund_owed", t.amount})
	}
	m.refundEvent(id, t, figures{state: "owed", amount: owed}, reason, 1, t.at, 0)
	if f.state != "owed" {
		m.refundEvent(id, t, f, reason, 2, changed, m.who.Approver)
	}
	m.post(t, changed, side{"refund_owed", f.reserved + f.paid + f.writtenOff}, side{"refund_in_transit", -f.reserved}, side{"refund_wallet", -f.paid}, side{"write_off", -f.writtenOff})
	switch state {
	case "confirmed", "returned", "sending", "sent", "unknown":
		m.payout(newID(), 1, id, t, state, owed, changed)
	case "landed":
		first := newID()
		m.payout(first, 1, id, t, "landed", owed, changed)
		m.payout(newID(), 2, id, t, "confirmed", owed, changed)
		m.insert(`INSERT INTO recoveries (id, payout_id, origin, counterparty, amount, currency, decimals, state, opened_at, changed_at)
			SELECT $1::uuid, p.id, 'payout', p.recipient, p.amount, $3, length($4) - 1, 'confirmed', $5, $5 FROM payouts p WHERE p.id = $2::uuid`,
			id, first, t.code, t.unit, changed)
		m.insert(`INSERT INTO recovery_events (recovery_id, at, kind, data) VALUES ($1::uuid, $2, 'opened', '{"state":"confirmed"}')`, id, changed)
	}
	m.n.Refunds++
}

type figures struct {
	state                                        string
	amount, approved, reserved, paid, writtenOff int64
}

func (m *month) refund(id string, t movement, f figures, reason string, changed time.Time) {
	approver := int64(0)
	if f.approved > 0 || f.state == "returned" {
		approver = m.who.Approver
	}
	version, held := 2, ""
	switch f.state {
	case "owed":
		version, changed = 1, t.at
	case "held":
		held = "The payer wrote that the account is closed; they send another."
	}
	m.insert(`
		INSERT INTO refunds (id, transfer_id, account_id, gateway, network, asset, payer, amount, approved, reserved, paid, written_off, approved_by, approved_at, held_why,
			opened_by, state, reason, opened_at, changed_at, version)
		SELECT $1::uuid, t.id, t.account_id, o.gateway, t.network, t.asset, t.sender, `+fmt.Sprintf(units, 3, 8)+`, `+fmt.Sprintf(units, 4, 8)+`, `+fmt.Sprintf(units, 5, 8)+`,
			`+fmt.Sprintf(units, 6, 8)+`, `+fmt.Sprintf(units, 7, 8)+`, NULLIF($9, 0::bigint), CASE WHEN $9 <> 0 THEN $10::timestamptz END, NULLIF($11, ''),
			CASE WHEN $13 = 'given_back' THEN $14::bigint END, $12, $13, t.seen_at, $10, $15
		FROM transfers t LEFT JOIN orders o ON o.id = t.order_id WHERE t.id = $2::uuid`,
		id, t.id, f.amount, f.approved, f.reserved, f.paid, f.writtenOff, t.unit, approver, changed, held, f.state, reason, m.who.Other, version)
}

// refundEvent is a line of the log with the figures of a refund, as the engines write it.
func (m *month) refundEvent(id string, t movement, f figures, reason string, version int, at time.Time, person int64) {
	m.event(at, `
		INSERT INTO payment_events (at, transfer_id, refund_id, kind, person_id, data)
		VALUES ($1, $2::uuid, $3::uuid, 'refund_' || $4, NULLIF($5, 0::bigint), jsonb_build_object('state', $4::text, 'reason', $6::text, 'version', $7::integer,
			'amount', trunc(`+fmt.Sprintf(units, 8, 13)+`)::text, 'approved', trunc(`+fmt.Sprintf(units, 9, 13)+`)::text, 'reserved', trunc(`+fmt.Sprintf(units, 10, 13)+`)::text,
			'paid', trunc(`+fmt.Sprintf(units, 11, 13)+`)::text, 'written_off', trunc(`+fmt.Sprintf(units, 12, 13)+`)::text)::text)`,
		at, t.id, id, f.state, person, reason, version, f.amount, f.approved, f.reserved, f.paid, f.writtenOff, t.unit)
}

func (m *month) payout(id string, attempt int, refund string, t movement, state string, amount int64, at time.Time) {
	tx, sent := hash("out"+id), state != "sending" && state != "unknown"
	if t.network == "bank:main" {
		tx = "OUT-" + id[24:]
	}
	back := int64(0)
	if state == "returned" {
		back = amount
	}
	m.insert(`
		INSERT INTO payouts (id, refund_id, attempt, network, asset, recipient, amount, how, state, made_by, approved_by, started_at, tx, sent_at, ended_at, ended_by, returned, returned_tx, returned_at)
		SELECT $1::uuid, f.id, $3, f.network, f.asset, f.payer, `+fmt.Sprintf(units, 4, 5)+`, 'hand', $6, $7, f.approved_by, $8, CASE WHEN $9 THEN $10 END, CASE WHEN $9 THEN $8::timestamptz END,
			CASE WHEN $6 IN ('confirmed','landed','returned') THEN $8::timestamptz + interval '5 minutes' END, CASE WHEN $6 IN ('confirmed','returned') THEN $11::bigint END,
			`+fmt.Sprintf(units, 12, 5)+`, CASE WHEN $6 = 'returned' THEN 'BACK-' || $10 END, CASE WHEN $6 = 'returned' THEN $8::timestamptz + interval '2 days' END
		FROM refunds f WHERE f.id = $2::uuid`,
		id, refund, attempt, amount, t.unit, state, m.who.Sender, at, sent, tx, m.who.Other, back)
}
