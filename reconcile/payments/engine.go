package payments

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"quittance/ledger"
	"quittance/ledger/payments"
	"quittance/ledger/system"
	"quittance/reconcile/canon"
	"quittance/reconcile/effects"
	"quittance/reconcile/policy"
	"quittance/reconcile/redact"
)

// Effects is what payments ask of [effects.Engine]: the work that is paid for is an effect.
type Effects interface {
	Open(ctx context.Context, o effects.Open) (effects.Lease, error)
	Close(ctx context.Context, account int64, runID, lease, outcome, logPosition string) (effects.RunView, error)
	Apply(ctx context.Context, ops []effects.Op) ([]effects.Answer, error)
}

// Engine decides everything about payment ids, orders, transfers and what is owed back.
// Its methods return a *[Refusal] (errors.As) where a program can act on the answer; any
// other error is internal and changes nothing. Safe for concurrent use, by many servers on
// one database.
type Engine struct {
	db      *ledger.DB
	effects Effects
	policy  func() *policy.Policy
	redact  *redact.Redactor
	keys    keys
	rails   func(network string) Rail
	public  string
	log     *slog.Logger

	healing sync.Mutex
	healed  payments.Place // how far the loop that heals has come, on this server

	lastLoop atomic.Int64 // unix milliseconds of the last finished round of the loops
}

// keys are secrets of this installation.
type keys struct{ receipts []byte }

// Options are what an engine works with.
type Options struct {
	DB      *ledger.DB
	Effects Effects
	Policy  func() *policy.Policy
	// Rails speaks to a network; nil for one that nobody can ask.
	Rails func(network string) Rail
	// PublicURL is where payers reach receipts; "" makes links relative.
	PublicURL string
	Log       *slog.Logger
}

// New makes an engine on a migrated database.
func New(ctx context.Context, o Options) (*Engine, error) {
	s, err := system.LoadSecrets(ctx, o.DB)
	if err != nil {
		return nil, err
	}
	if o.Rails == nil {
		o.Rails = func(string) Rail { return nil }
	}
	return &Engine{
		db: o.DB, effects: o.Effects, policy: o.Policy, redact: redact.New(s.Redaction), keys: keys{receipts: s.Receipts},
		rails: o.Rails, public: o.PublicURL, log: o.Log,
	}, nil
}

// arguments reads a tool's arguments as they are stored and compared: after redaction.
func (e *Engine) arguments(t *policy.Tool, raw []byte) (*canon.Value, string, error) {
	if len(raw) > effects.ArgumentLimit {
		return nil, "", fmt.Errorf("has more than %d bytes", effects.ArgumentLimit)
	}
	if _, err := canon.ParseObject(raw); err != nil {
		return nil, "", err
	}
	clean, _, err := e.redact.JSON(raw, t.Redact, t.Keep())
	if err != nil {
		return nil, "", err
	}
	args, err := canon.ParseObject(clean)
	return args, string(clean), err
}

// errAgain rolls a transaction back in which somebody else was faster: what was read is
// not so any more.
var errAgain = errors.New("somebody else was faster")

// tries bounds how often a call starts again. Each time it is another one who was faster.
const tries = 5

// RunName is the run that the work of a payment is an effect of.
func RunName(gateway, paymentID string) string { return RunPrefix + gateway + "/" + paymentID }

// RunPrefix begins the names of runs that belong to payments; agents open none of them.
const RunPrefix = "payment/"

// Payment is a payment and everything that hangs on it.
type Payment struct {
	*payments.Row
	Order          *payments.Order // nil: not created yet
	Authorizations []payments.Authorization
	Transfers      []payments.Transfer
	Refunds        []payments.Refund
	Work           *payments.Work // nil: none was recorded
}

// load reads everything that hangs on a payment.
func load(ctx context.Context, r ledger.Reader, row *payments.Row) (*Payment, error) {
	p := &Payment{Row: row}
	if err := p.hang(ctx, r); err != nil {
		return nil, err
	}
	var err error
	p.Work, err = payments.WorkOf(ctx, r, row.Account, RunName(row.Gateway, row.PaymentID))
	return p, err
}

// hang reads what hangs on a payment but for its work, which a payment that is over is not
// asked for.
func (p *Payment) hang(ctx context.Context, r ledger.Reader) (err error) {
	if p.Authorizations, err = payments.Authorizations(ctx, r, p.ID); err != nil {
		return err
	}
	if p.Order, err = payments.OrderOf(ctx, r, p.ID); err != nil || p.Order == nil {
		return err
	}
	if p.Transfers, err = payments.TransfersOf(ctx, r, p.Order.ID); err != nil {
		return err
	}
	if len(p.Transfers) == 0 {
		return nil
	}
	p.Refunds, err = payments.RefundsOf(ctx, r, p.Order.ID)
	return err
}

// hangAtOnce is hang outside of a transaction, for the replay of a frozen answer: the four
// reads need nothing of each other, and a round trip is most of what each costs.
func (p *Payment) hangAtOnce(ctx context.Context, db *ledger.DB) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { p.Authorizations, err = payments.Authorizations(ctx, db, p.ID); return err })
	g.Go(func() (err error) { p.Order, err = payments.OrderOf(ctx, db, p.ID); return err })
	g.Go(func() (err error) { p.Transfers, err = payments.TransfersOf(ctx, db, p.OrderID); return err })
	g.Go(func() (err error) { p.Refunds, err = payments.RefundsOf(ctx, db, p.OrderID); return err })
	return g.Wait()
}

// locked runs f in a transaction that holds the payment's row. The refusal that f returns
// is not an error of the transaction: what f recorded of it stays.
func (e *Engine) locked(ctx context.Context, n payments.Name, f func(ctx context.Context, tx *ledger.Tx, p *Payment) (error, error)) error {
	var refusal error
	err := e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		refusal = nil
		m, err := system.Read(ctx, tx)
		if err != nil {
			return err
		}
		if m.Behind() {
			refusal = errBehind
			return nil
		}
		row, err := payments.LockByName(ctx, tx, n)
		if err != nil {
			return err
		}
		if row == nil {
			refusal = errNotFound
			return nil
		}
		p, err := load(ctx, tx, row)
		if err != nil {
			return err
		}
		refusal, err = f(ctx, tx, p)
		return err
	})
	if err != nil {
		return err
	}
	return refusal
}

// reload reads the payment again, after it changed.
func (p *Payment) reload(ctx context.Context, tx *ledger.Tx) error {
	row, err := payments.ByID(ctx, tx, p.ID)
	if err != nil {
		return err
	}
	again, err := load(ctx, tx, row)
	if err != nil {
		return err
	}
	*p = *again
	return nil
}
