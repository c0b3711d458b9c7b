package refunds

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/google/uuid"

	"quittance/ledger"
	"quittance/ledger/audit"
	"quittance/ledger/money"
	"quittance/ledger/payments"
	store "quittance/ledger/refunds"
	"quittance/ledger/system"
	"quittance/reconcile/access"
	"quittance/reconcile/policy"
)

// Engine decides about what is owed back. Its methods return a *[Refusal] (errors.As) where
// a person can act on the answer; any other error is internal and changes nothing. Safe for
// concurrent use, by many servers on one database.
type Engine struct {
	db       *ledger.DB
	policy   func() *policy.Policy
	networks func(network string) Network
	log      *slog.Logger
	lastLoop atomic.Int64
}

// Options are what an engine works with.
type Options struct {
	DB     *ledger.DB
	Policy func() *policy.Policy
	// Networks asks a network what became of a payout; nil for one that nobody can ask: there
	// a second person says what they saw.
	Networks func(network string) Network
	Log      *slog.Logger
}

// New makes an engine on a migrated database.
func New(o Options) *Engine {
	if o.Networks == nil {
		o.Networks = func(string) Network { return nil }
	}
	return &Engine{db: o.DB, policy: o.Policy, networks: o.Networks, log: o.Log}
}

// Act is one thing that a person does to what is owed.
type Act struct {
	By      access.MadeBy
	Refund  string
	Version int64 // what the person looked at; another one is refused
	Note    string
}

// held is a refund under its lock, with the transfer that it is for.
type held struct {
	tx  *ledger.Tx
	f   payments.Refund
	t   *payments.Transfer
	act Act
}

// locked runs f in a transaction that holds the lock of a refund: its payment's row, or
// its transfer's where it has no order.
func (e *Engine) locked(ctx context.Context, id string, f func(ctx context.Context, h *held) error) error {
	if _, err := uuid.Parse(id); err != nil {
		return errNotFound
	}
	return e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		sys, err := system.Read(ctx, tx)
		if err != nil {
			return err
		}
		if sys.Behind() {
			return errBehind
		}
		found, err := payments.RefundByID(ctx, tx, id)
		if err != nil {
			return err
		}
		if found == nil {
			return errNotFound
		}
		// The order of a transfer that is owed back never changes any more.
		t, err := payments.TransferByID(ctx, tx, found.Transfer)
		if err != nil {
			return err
		}
		if t.OrderID == "" {
			t, err = payments.LockTransfer(ctx, tx, t.ID)
		} else {
			var o *payments.Order
			if o, err = payments.OrderByID(ctx, tx, t.OrderID); err == nil {
				_, err = payments.Lock(ctx, tx, o.Payment)
			}
		}
		if err != nil {
			return err
		}
		if found, err = payments.RefundByID(ctx, tx, id); err != nil {
			return err
		}
		if t, err = payments.TransferByID(ctx, tx, t.ID); err != nil {
			return err
		}
		return f(ctx, &held{tx: tx, f: *found, t: t})
	})
}

// act runs f under the lock, for a person who looked at the version that stands.
func (e *Engine) act(ctx context.Context, a Act, f func(ctx context.Context, h *held) error) error {
	if a.By.Person == nil {
		return refusal(CodeOwn, "A person has to do that.")
	}
	if len(a.Note) > noteLimit {
		return refusal(CodeInvalid, "A note has at most 4096 bytes.")
	}
	return e.locked(ctx, a.Refund, func(ctx context.Context, h *held) error {
		if a.Version != 0 && a.Version != h.f.Version {
			return refusal(CodeStale, "It changed since you looked at it. Look again.")
		}
		h.act = a
		return f(ctx, h)
	})
}

const noteLimit = 4096

// person is who acts; 0 where the engine does.
func (h *held) person() int64 {
	if h.act.By.Person == nil {
		return 0
	}
	return h.act.By.Person.ID
}

// step takes the refund through an event, posts what that means, and records it. set
// changes what goes with it, before it is stored.
func (h *held) step(ctx context.Context, e Event, x money.Atomic, kind string, more map[string]any, set func(f *payments.Refund)) error {
	before := h.f
	after, why := Next(h.f, e, x)
	if why != "" {
		return refusal(CodeNotNow, why)
	}
	if set != nil {
		set(&after)
	}
	if err := payments.ChangeRefund(ctx, h.tx, &after); err != nil {
		return told(err)
	}
	h.f = after
	if err := payments.Post(ctx, h.tx, &h.t.Moved, entry(before, after)...); err != nil {
		return err
	}
	if more == nil {
		more = map[string]any{}
	}
	if h.act.Note != "" {
		more["note"] = h.act.Note
	}
	if err := payments.RecordRefund(ctx, h.tx, h.f.ID, kind, h.person(), more); err != nil {
		return err
	}
	if h.act.By.Person == nil {
		return nil
	}
	line := h.act.By.Row(strings.Replace(kind, "refund_", "refund.", 1), "refund:"+h.f.ID)
	line.Note = h.act.Note
	return audit.Add(ctx, h.tx, line)
}

// entry is the double entry of a change that leaves what is owed in all as it is.
func entry(was, now payments.Refund) (sides []payments.Posting) {
	balance := func(f payments.Refund) [4]money.Atomic {
		var zero money.Atomic
		return [4]money.Atomic{f.Reserved.Minus(f.Rest()), zero.Minus(f.Reserved), zero.Minus(f.Paid), zero.Minus(f.WrittenOff)}
	}
	a, b := balance(was), balance(now)
	for i, account := range []string{"refund_owed", "refund_in_transit", "refund_wallet", "write_off"} {
		if d := b[i].Minus(a[i]); d.Sign() != 0 {
			sides = append(sides, payments.Posting{Account: account, Amount: d, Refund: now.ID})
		}
	}
	return sides
}

// told turns what the database refused into words. Each of its guards is asked for before;
// they hold where somebody was faster, or this package is wrong.
func told(err error) error {
	switch ledger.Constraint(err) {
	case "refunds_final":
		return refusal(CodeNotNow, "Its transfer is not final yet: a reorganisation could still take it back.")
	case "refunds_two_people", "payouts_two_people":
		return refusal(CodeOwn, ownText)
	case "payouts_recipient":
		return refusal(CodeInvalid, "It may only go to the payer, or to the destination that was approved.")
	case "payouts_hash_once", "payouts_return_once":
		return refusal(CodeUsed, "That reference is on record for another payment.")
	case "payouts_incoming":
		return refusal(CodeUsed, "That reference is of money that came in, not of a payment of ours.")
	case "payouts_one_live", "refunds_never_over", "refunds_approved":
		return refusal(CodeTooMuch, "Somebody else was faster. Look again.")
	}
	return err
}

const ownText = "Whoever approves it and whoever sends it, opened it or said where it goes are two people."

var errNotFound = refusal(CodeNotFound, "There is no such refund.")

// asset is what an amount of the refund is counted in; nil where the policy does not
// declare it: its decimals are not known then.
func (e *Engine) asset(f *payments.Refund) *policy.RailAsset {
	return e.policy().RailAsset(f.Network, f.Asset)
}

// Amount reads what a person typed as an amount of the refund's asset: plain digits with at
// most as many decimals as the asset has; fewer are filled up. "" is all of rest.
func (e *Engine) Amount(f *payments.Refund, text string, rest money.Atomic) (money.Atomic, error) {
	a := e.asset(f)
	if a == nil {
		return money.Atomic{}, refusal(CodeInvalid, "The policy does not declare this asset: how many decimals it has is not known, and nothing can be paid in it.")
	}
	if text == "" {
		return rest, nil
	}
	amount, err := money.ParseDecimal(text, a.Asset)
	if err != nil {
		return money.Atomic{}, refusal(CodeInvalid, "The amount cannot be read: "+err.Error()+".")
	}
	return amount.Atomic(), nil
}

// payable checks an amount against what the rail can move.
func (e *Engine) payable(f *payments.Refund, x money.Atomic) error {
	a := e.asset(f)
	switch {
	case a == nil:
		return refusal(CodeInvalid, "The policy does not declare this asset: nothing can be paid in it.")
	case !x.MultipleOf(a.Step):
		return refusal(CodeInvalid, "That is not payable on this rail: it moves steps of "+money.Of(a.Step, a.Asset).Display()+".")
	}
	return nil
}

// Blocks says what stands in the way of paying it, in words; "" when nothing does.
func (e *Engine) Blocks(f *payments.Refund, final bool) string {
	if why := e.Stuck(f, final); why != "" || !Open(f.State) {
		return why
	}
	switch f.State {
	case Owed, Returned:
		return "Waits for approval"
	case Approved:
		return "Waits to be sent"
	case Sending:
		return "Being sent: no reference yet"
	case Sent:
		return "Not seen to arrive yet"
	case Unknown:
		return "Nobody knows whether it was sent"
	}
	return ""
}

// Stuck says why nobody may approve it or start to send it as it stands, in words; "" where
// nothing is in the way.
func (e *Engine) Stuck(f *payments.Refund, final bool) string {
	a := e.asset(f)
	switch {
	case !Open(f.State):
		return ""
	case f.State == Held:
		return "Held: " + f.HeldWhy
	case a == nil:
		return "Asset not declared: not payable"
	case f.Rest().Cmp(a.Step) < 0:
		return "Below the step of its rail: not payable"
	case !final:
		return "Transfer not final"
	case f.WriteOff.Sign() > 0:
		return "Write-off waits for a second person"
	}
	return ""
}

// Payouts are the attempts to pay a refund.
func (e *Engine) Payouts(ctx context.Context, refund string) ([]store.Payout, error) {
	return store.Payouts(ctx, e.db, refund)
}

// Blind tells that nobody can ask the network: a second person says what they saw.
func (e *Engine) Blind(network string) bool { return e.networks(network) == nil }
