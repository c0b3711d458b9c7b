package payments

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"quittance/ledger"
	"quittance/ledger/payments"
	"quittance/ledger/system"
)

// Answer is what a gateway is told: Do is [Proceed] or [Replay]. Everything else is a
// [Refusal].
type Answer struct {
	Do         Do
	Payment    *Payment
	Fence      int64
	Paid       bool
	Work       Work
	WorkResult string
	MoneyFirst bool // in which order the gateway works
}

// Claim takes a payment id, or says what became of it.
func (e *Engine) Claim(ctx context.Context, in Asked) (*Answer, error) {
	answer, err := e.claimed(ctx, in)
	if answer != nil {
		answer.MoneyFirst = e.policy().Gateway(in.Gateway).MoneyFirst
	}
	return answer, err
}

func (e *Engine) claimed(ctx context.Context, in Asked) (*Answer, error) {
	a, err := e.read(in)
	if err != nil {
		return nil, err
	}
	a.OrderID = uuid.Must(uuid.NewV7()).String()
	row, fresh, err := payments.First(ctx, e.db, a.Claimed, a.attempt, a.auth)
	if err != nil {
		return nil, err
	}
	if fresh {
		return &Answer{Do: Proceed, Fence: row.Fence, Work: NoWork, Payment: &Payment{Row: row}}, nil
	}
	for range tries {
		answer, err := e.known(ctx, a, row)
		if !errors.Is(err, errAgain) {
			return answer, err
		}
		row = nil
	}
	return nil, errAgain
}

// known answers for an id, a quote or an authorization that is known already. row is what
// is stored of the id, where that was read.
func (e *Engine) known(ctx context.Context, a asked, row *payments.Row) (*Answer, error) {
	if row != nil {
		p, err := e.glance(ctx, row, a)
		if err != nil {
			return nil, err
		}
		c := p.caller(a)
		if d := Decide(p.facts(e.policy().Gateway(a.Gateway), a.auth), c); !d.changes() && !(d.Check && p.unasked()) && !p.stores(a, c) {
			return e.answer(d, p)
		}
	}
	var answer *Answer
	var refusal error
	err := e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) (err error) {
		answer, refusal = nil, nil
		answer, err = e.take(ctx, tx, a)
		if r, ok := errors.AsType[*Refusal](err); ok {
			refusal = r // what was recorded of it stays
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return answer, refusal
}

func (a asked) name() payments.Name {
	return payments.Name{Account: a.Account, Gateway: a.Gateway, PaymentID: a.PaymentID}
}

// glance reads as much of a payment as its first rows need: a repeat while it is in flight
// is the most frequent question of all.
func (e *Engine) glance(ctx context.Context, row *payments.Row, a asked) (*Payment, error) {
	p := &Payment{Row: row}
	c := p.caller(a)
	switch {
	case !c.SamePayer || !c.SameRequest || row.State == string(Pruned):
		return p, nil
	case row.State == string(InFlight) && !c.SameAttempt && row.Now.Sub(row.ClaimedAt) <= HealAfter:
		if a.auth == nil {
			return p, nil
		}
		var err error
		p.Authorizations, err = payments.Authorizations(ctx, e.db, row.ID)
		return p, err
	case (row.State == string(Settled) || row.State == string(Refused)) && !(row.Healed && row.Digest == nil): // else the work's answer is wanted
		return p, p.hangAtOnce(ctx, e.db)
	}
	return load(ctx, e.db, row)
}

// changes tells that a decision writes something, but for when the rail is asked.
func (d Decision) changes() bool {
	return d.Claim || d.TakeOver || d.Heal || d.Refuse || d.Unknown || d.Alert
}

// unasked tells that the rail is not asked soon anyway: a payer who asks often makes it no
// sooner, and writes nothing.
func (p *Payment) unasked() bool {
	return p.CheckAt.IsZero() || p.CheckAt.Sub(p.Now) > payments.CheckPace
}

// stores tells that the caller brings an authorization that is not stored yet, or not as
// what its payer signed.
func (p *Payment) stores(a asked, c Caller) bool {
	if a.auth == nil || !c.SamePayer || !c.SameRequest || p.State == string(Pruned) {
		return false
	}
	stored := p.known(a.auth)
	return stored == nil || a.auth.Signed && stored.DeadWhy == "" && (!stored.Signed || stored.ValidBefore < a.auth.ValidBefore)
}

// AuthorizationLimit is how many authorizations an id takes. Each is asked about and counts
// for ever; a payer who signs each time that it is told to comes nowhere near.
const AuthorizationLimit = 64

// take decides about a payment whose row, or whose absence, it holds.
func (e *Engine) take(ctx context.Context, tx *ledger.Tx, a asked) (*Answer, error) {
	m, err := system.Read(ctx, tx)
	if err != nil {
		return nil, err
	}
	if m.Behind() {
		return nil, errBehind
	}
	row, err := payments.LockByName(ctx, tx, a.name())
	if err != nil {
		return nil, err
	}
	if row == nil {
		return e.claim(ctx, tx, a, m)
	}
	p, err := load(ctx, tx, row)
	if err != nil {
		return nil, err
	}
	c := p.caller(a)
	full := p.stores(a, c) && p.known(a.auth) == nil && len(p.Authorizations) >= AuthorizationLimit
	if p.stores(a, c) && !full {
		other, err := e.offer(ctx, tx, p, a, false)
		if err != nil || other != nil {
			return nil, errors.Join(err, other.refuse(ctx, tx, e))
		}
		if p.Authorizations, err = payments.Authorizations(ctx, tx, p.ID); err != nil {
			return nil, err
		}
		c = p.caller(a)
	}
	d := Decide(p.facts(e.policy().Gateway(a.Gateway), a.auth), c)
	if full && d.Do == Proceed { // nobody may go on with one that is not stored
		d = Decision{Row: "too many authorizations", Do: Wait, Retry: retryLater, ShowOrder: true}
	}
	if d.Do == Proceed && d.TakeOver {
		fence := max(p.Fence, m.FenceBase) + 1
		if a.auth != nil && !d.Paid { // what is paid needs no further one
			if _, err := e.offer(ctx, tx, p, a, true); err != nil {
				return nil, err
			}
		}
		if err := payments.TakeOver(ctx, tx, p.ID, fence, a.attempt, d.Paid, p.sentAfterWork(e.policy().Gateway(p.Gateway))); err != nil {
			return nil, err
		}
	}
	if err := e.settle(ctx, tx, p, d); err != nil {
		return nil, err
	}
	if d.changes() {
		if err := p.reload(ctx, tx); err != nil {
			return nil, err
		}
	}
	return e.answer(d, p)
}

// settle writes what a decision says of a payment, but for who may act.
func (e *Engine) settle(ctx context.Context, tx *ledger.Tx, p *Payment, d Decision) error {
	note := func(kind string, alert bool) error {
		return payments.Record(ctx, tx, payments.Event{Payment: p.ID, Kind: kind, Alert: alert}, map[string]any{"row": d.Row, "reason": d.Reason})
	}
	switch {
	case d.TakeOver:
		return note("taken_over", false)
	case d.Heal:
		if err := payments.End(ctx, tx, p.ID, string(Settled), "", "", true, payments.Answer{}); err != nil {
			return err
		}
		return note("healed", false)
	case d.Refuse:
		if err := payments.End(ctx, tx, p.ID, string(Refused), "", "the order is over and nothing can pay it any more", false, payments.Answer{}); err != nil {
			return err
		}
		return note("refused", false)
	case d.Alert:
		return e.alert(ctx, tx, p.ID, d)
	}
	if d.Unknown {
		if err := payments.Unknown(ctx, tx, p.ID, "", ""); err != nil {
			return err
		}
		if err := note("unknown", false); err != nil {
			return err
		}
	}
	if d.Check {
		return payments.CheckAfter(ctx, tx, p.ID, 0, false)
	}
	return nil
}

// claim takes an id that nobody has claimed, in the transaction that looked.
func (e *Engine) claim(ctx context.Context, tx *ledger.Tx, a asked, m system.Moment) (*Answer, error) {
	other, err := e.elsewhere(ctx, tx, a, 0)
	if err != nil {
		return nil, err
	}
	if other != nil {
		return nil, other.refuse(ctx, tx, e)
	}
	state := InFlight
	if m.InGap() { // it may have been claimed, and sent, in what was lost
		state = Unknown
	}
	fence := m.FenceBase + 1
	id, err := payments.Add(ctx, tx, a.Claimed, string(state), fence, a.attempt, m.Now)
	switch ledger.Constraint(err) {
	case "payments_identity", "payments_one_a_quote":
		return nil, errAgain
	}
	if err != nil {
		return nil, err
	}
	p := &Payment{Row: &payments.Row{ID: id, Claimed: a.Claimed, State: string(state), Fence: fence}}
	if a.auth != nil {
		if other, err := e.offer(ctx, tx, p, a, true); err != nil || other != nil {
			return nil, errors.Join(err, errAgain)
		}
	}
	if err := payments.Record(ctx, tx, payments.Event{Payment: id, Kind: "claimed"}, map[string]any{"fence": fence, "state": state}); err != nil {
		return nil, err
	}
	if state == Unknown {
		if err := payments.CheckAfter(ctx, tx, id, 0, false); err != nil {
			return nil, err
		}
		return e.answer(Decision{Row: "log gap", Do: Wait, Retry: retryLater, ShowOrder: true}, p)
	}
	return &Answer{Do: Proceed, Payment: p, Fence: fence, Work: NoWork}, nil
}

// offer stores the authorization that is brought. The other payment is the one that it
// stands under already.
func (e *Engine) offer(ctx context.Context, tx *ledger.Tx, p *Payment, a asked, takenUp bool) (*other, error) {
	x := *a.auth
	x.Payment = p.ID
	ok, err := payments.Offer(ctx, tx, x, takenUp)
	if ok || err != nil {
		return nil, err
	}
	o, err := e.elsewhere(ctx, tx, a, p.ID)
	if err == nil && o == nil {
		err = errAgain
	}
	return o, err
}

// other is another payment that has the caller's quote or authorization.
type other struct {
	row  *payments.Row
	kind Elsewhere
}

// elsewhere finds the payment, other than one, that has the quote or the authorization.
func (e *Engine) elsewhere(ctx context.Context, tx *ledger.Tx, a asked, than int64) (*other, error) {
	var found []*payments.Row
	if a.auth != nil {
		row, err := payments.ByNonce(ctx, tx, a.auth.Network, a.auth.Asset, a.auth.Payer, a.auth.Nonce)
		if err != nil {
			return nil, err
		}
		found = append(found, row)
	}
	if a.Quote != "" {
		row, err := payments.ByQuote(ctx, tx, a.Account, a.Gateway, a.Quote)
		if err != nil {
			return nil, err
		}
		found = append(found, row)
	}
	for _, row := range found {
		switch {
		case row == nil || row.ID == than || row.Account == a.Account && row.Gateway == a.Gateway && row.PaymentID == a.PaymentID:
		case row.Account != a.Account || row.Payer != a.Payer:
			return &other{row, AnotherPayers}, nil
		case row.State == string(InFlight) || row.State == string(Unknown):
			return &other{row, LiveElsewhere}, nil
		default:
			return &other{row, SettledOnce}, nil
		}
	}
	return nil, nil
}

// refuse answers with the other payment.
func (o *other) refuse(ctx context.Context, tx *ledger.Tx, e *Engine) error {
	if o == nil {
		return nil
	}
	d := elsewhere(Caller{Elsewhere: o.kind})
	if d.Alert {
		if err := e.alert(ctx, tx, o.row.ID, d); err != nil {
			return err
		}
	}
	_, err := e.answer(d, &Payment{Row: o.row})
	return err
}

// alert records a conflict that a person should see. The same one again within a minute is
// the same caller trying again.
func (e *Engine) alert(ctx context.Context, tx *ledger.Tx, payment int64, d Decision) error {
	recent, err := payments.Alerted(ctx, tx, payment, "conflict", string(d.Reason))
	if err != nil || recent {
		return err
	}
	return payments.Record(ctx, tx, payments.Event{Payment: payment, Kind: "conflict", Alert: true}, map[string]any{"row": d.Row, "reason": d.Reason})
}
