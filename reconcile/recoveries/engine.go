package recoveries

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"quittance/ledger"
	"quittance/ledger/audit"
	"quittance/ledger/money"
	store "quittance/ledger/recoveries"
	"quittance/ledger/system"
	"quittance/reconcile/access"
)

// Engine changes recoveries. Its methods return a *[Refusal] (errors.As) where a person can
// act on the answer; any other error is internal and changes nothing.
type Engine struct{ db *ledger.DB }

// New makes an engine on a migrated database.
func New(db *ledger.DB) *Engine { return &Engine{db} }

// Refusal is why an act was not done; it implements error. Detail is for people.
type Refusal struct {
	NotFound bool
	Stale    bool
	Detail   string
}

func (r *Refusal) Error() string { return r.Detail }

func refusal(detail string) *Refusal { return &Refusal{Detail: detail} }

// Act is one thing that a person does to a recovery.
type Act struct {
	By       access.MadeBy
	Recovery string
	Version  int64
	Note     string
}

// Terms are what a person confirms to have left twice.
type Terms struct{ Amount, Currency, Counterparty string }

// Confirm says that it left twice. Where the amount is known already, an empty one keeps it.
func (e *Engine) Confirm(ctx context.Context, a Act, t Terms) error {
	return e.act(ctx, a, Confirm, "confirmed", func(v *store.Recovery) (map[string]any, error) {
		if t.Counterparty = strings.TrimSpace(t.Counterparty); t.Counterparty != "" {
			if len(t.Counterparty) > 1024 {
				return nil, refusal("A counterparty has at most 1024 bytes.")
			}
			v.Counterparty = t.Counterparty
		}
		x, err := Amount(v, t.Amount, t.Currency, false)
		if err != nil {
			return nil, err
		}
		v.Amount.V, v.Amount.Valid, v.Currency, v.Decimals = x.Atomic(), true, x.Asset().Code, x.Asset().Decimals
		return nil, nil
	})
}

// Amount reads what a person typed as the amount of a recovery: plain digits with at most
// as many decimals as the currency has. "" is all of it, or with rest what is still to come
// back; then the currency is the recovery's own.
func Amount(v *store.Recovery, typed, currency string, rest bool) (x money.Amount, err error) {
	own := money.Asset{Code: v.Currency, Decimals: v.Decimals}
	left := money.Of(v.Amount.V.Minus(v.Recovered), own)
	asset := own
	if !rest && (v.Currency == "" || currency != "" && !strings.EqualFold(currency, v.Currency)) {
		if asset, err = money.Currency(currency); err != nil {
			return x, refusal("The currency must be an ISO code, such as USD.")
		}
	}
	switch {
	case typed == "" && !v.Amount.Valid:
		return x, refusal("Say how much left twice.")
	case typed == "" && rest:
		x = left
	case typed == "" && asset != own:
		return x, refusal("Say how much left twice, in that currency.")
	case typed == "":
		x = money.Of(v.Amount.V, own)
	default:
		if x, err = money.ParseDecimal(typed, asset); err != nil {
			return x, refusal("The amount cannot be read: " + err.Error() + ".")
		}
	}
	switch {
	case x.Sign() <= 0:
		return x, refusal("An amount above 0 is needed.")
	case rest && x.Atomic().Cmp(left.Atomic()) > 0:
		return x, refusal("No more than " + left.Display() + " can come back.")
	case !rest && x.Atomic().Cmp(v.Recovered) < 0:
		return x, refusal("More than that came back already.")
	}
	return x, nil
}

// Dismiss says that nothing left twice.
func (e *Engine) Dismiss(ctx context.Context, a Act) error {
	return e.act(ctx, a, Dismiss, "dismissed", func(v *store.Recovery) (map[string]any, error) {
		if v.Recovered.Sign() > 0 {
			return nil, refusal("Some of it came back already.")
		}
		return nil, noteNeeded(a.Note)
	})
}

// Claim records that the other side was asked for it, by a reference of the claim.
func (e *Engine) Claim(ctx context.Context, a Act, reference string) error {
	return e.act(ctx, a, Claim, "claimed", func(v *store.Recovery) (map[string]any, error) {
		ref, err := referenceOf(reference)
		v.Claim = ref
		return map[string]any{"claim": ref}, err
	})
}

// Return is money or credit that came back.
type Return struct {
	Amount    string // "" is all that is left
	How       string // "cash" | "credit_note"
	Reference string
}

// Receive records that something of it came back; with the last of it, it is recovered.
func (e *Engine) Receive(ctx context.Context, a Act, r Return) error {
	if r.How != "cash" && r.How != "credit_note" {
		return refusal("Say whether it came back in cash or by a credit note.")
	}
	return e.act(ctx, a, Receive, "received", func(v *store.Recovery) (map[string]any, error) {
		ref, err := referenceOf(r.Reference)
		if err != nil {
			return nil, err
		}
		came, err := Amount(v, r.Amount, "", true)
		if err != nil {
			return nil, err
		}
		x := came.Atomic()
		v.Recovered, v.Reference = v.Recovered.Plus(x), ref
		if v.Recovered.Cmp(v.Amount.V) == 0 {
			v.State, _ = Next(v.State, Settle)
			v.How = r.How
		}
		return map[string]any{"received": x.String(), "how": r.How, "reference": ref}, nil
	})
}

// WriteOff gives up what did not come back.
func (e *Engine) WriteOff(ctx context.Context, a Act) error {
	return e.act(ctx, a, WriteOff, "written_off", func(*store.Recovery) (map[string]any, error) { return nil, noteNeeded(a.Note) })
}

// Assign gives it to a person to look after.
func (e *Engine) Assign(ctx context.Context, a Act, owner int64) error {
	return e.act(ctx, a, Assign, "assigned", func(v *store.Recovery) (map[string]any, error) {
		v.OwnerID = owner
		return nil, nil
	})
}

func referenceOf(text string) (string, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return "", refusal("A reference is needed by which it is found again.")
	case len(text) > 512:
		return "", refusal("A reference has at most 512 bytes.")
	}
	return text, nil
}

func noteNeeded(note string) error {
	if strings.TrimSpace(note) == "" {
		return refusal("Say why, in the note.")
	}
	return nil
}

// act runs f on the locked row, which takes it through an event. What f returns is added to
// the record.
func (e *Engine) act(ctx context.Context, a Act, ev Event, kind string, f func(v *store.Recovery) (map[string]any, error)) error {
	switch _, err := uuid.Parse(a.Recovery); {
	case err != nil:
		return errNotFound
	case a.By.Person == nil:
		return refusal("A person has to do that.")
	case len(a.Note) > 4096:
		return refusal("A note has at most 4096 bytes.")
	}
	return e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		sys, err := system.Read(ctx, tx)
		if err != nil {
			return err
		}
		if sys.Behind() {
			return refusal("The database was found not to hold what it once confirmed: nothing goes on until a person acknowledges it.")
		}
		v, err := store.Lock(ctx, tx, a.Recovery)
		switch {
		case err != nil:
			return err
		case v == nil:
			return errNotFound
		case a.Version != 0 && a.Version != v.Version:
			return &Refusal{Stale: true, Detail: "It changed since you looked at it. Look again."}
		}
		to, ok := Next(v.State, ev)
		if !ok {
			return refusal("That does not fit a recovery that is " + strings.ReplaceAll(v.State, "_", " ") + ".")
		}
		v.State = to
		more, err := f(v)
		if err != nil {
			return err
		}
		if more == nil {
			more = map[string]any{}
		}
		if a.Note != "" {
			more["note"] = a.Note
		}
		if err := store.Change(ctx, tx, v, kind, a.By.Person.ID, more); err != nil {
			if ledger.Constraint(err) == "recoveries_one_open" {
				return refusal("Another recovery of the same effect is open.")
			}
			return err
		}
		line := a.By.Row("recovery."+kind, "recovery:"+v.ID)
		line.Note = a.Note
		return audit.Add(ctx, tx, line)
	})
}

var errNotFound = &Refusal{NotFound: true, Detail: "There is no such recovery."}

// Acknowledged brings the open recovery of an effect in line with what a person found of
// its contradictions.
func Acknowledged(ctx context.Context, tx *ledger.Tx, effect string, twice bool, person int64, note string) error {
	v, err := store.OpenOf(ctx, tx, effect)
	if err != nil || v == nil || v.State != Suspected {
		return err
	}
	kind := "acknowledged" // it left twice, and a person still has to say how much
	switch {
	case !twice:
		v.State, kind = Dismissed, "dismissed"
	case v.Amount.Valid:
		v.State, kind = Confirmed, "confirmed"
	}
	return store.Change(ctx, tx, v, kind, person, map[string]any{"note": note})
}
