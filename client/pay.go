package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"quittance/client/x402"
)

// Payer pays for calls, each purchase once, whatever crashes: what it will send is on disk
// before it is sent, and the same is sent again until the gateway says what became of it.
// It speaks to gateways, and never to a server of Quittance. Safe for concurrent use, and
// by several processes on one folder.
type Payer struct {
	store    intents
	sign     Sign
	http     *http.Client
	log      *slog.Logger
	patience time.Duration
}

// Sign chooses one of the ways to pay that are offered and signs it: payload is what the
// scheme wants, for "exact" on EVM networks an [x402.Exact]. It decides whether the price
// is right; an error leaves the purchase unpaid. It is called once for a purchase, and
// again only when the gateway says that nothing signed before can move money any more:
// then offered holds no other recipient, asset or amount than before. What it signed may
// be thrown away unsent, where another process was faster.
type Sign func(ctx context.Context, offered x402.Required) (chosen x402.Requirements, payload json.RawMessage, err error)

// PayerOption changes one default of [NewPayer].
type PayerOption func(*Payer)

// PayThrough sends through h, whose transport decides about TLS and proxies.
func PayThrough(h *http.Client) PayerOption { return func(p *Payer) { p.http = h } }

// PayPatience sets how long Pay asks what became of a payment before it gives up with
// [ErrPaymentOpen]; 10 minutes by default, so that the gateway's own healing is waited for.
func PayPatience(d time.Duration) PayerOption { return func(p *Payer) { p.patience = d } }

// PayLog receives what nobody waits for. Nothing is logged by default, and never a body.
func PayLog(log *slog.Logger) PayerOption { return func(p *Payer) { p.log = log } }

// NewPayer makes a payer that keeps its intents below dir, which must survive the process
// and, in a container, be on a volume. The files hold signed authorizations, which let
// their recipients take the money; only their owner can read them.
func NewPayer(dir string, sign Sign, opts ...PayerOption) *Payer {
	p := &Payer{store: intents{dir}, sign: sign, http: &http.Client{}, log: slog.New(slog.DiscardHandler), patience: 10 * time.Minute}
	for _, o := range opts {
		o(p)
	}
	// A redirect could carry the authorization elsewhere.
	direct := *p.http
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	p.http = &direct
	return p
}

// Errors of [Payer.Pay]. Other refusals of the gateway are a [*Problem].
var (
	// ErrNotStored means that the intent could not be stored: nothing was sent.
	ErrNotStored = errors.New("the payment could not be stored, so it was not sent")
	// ErrOtherPurchase means that the key belongs to another request.
	ErrOtherPurchase = errors.New("the key was used for another request")
	// ErrQuoteSigned means that another purchase was signed for the same quote.
	ErrQuoteSigned = errors.New("another purchase was signed for this quote")
	// ErrPaymentOpen means that nobody knows yet what became of the payment. Call Pay with
	// the same key again, later; never with another one for the same purchase.
	ErrPaymentOpen = errors.New("it is not known yet what became of the payment")
	// ErrAskedAgain means that the gateway asked for another payment while what was signed
	// may still move money. Nothing was signed.
	ErrAskedAgain = errors.New("the gateway asks for another payment, and the first may still be taken")
)

// Paid is the gateway's answer.
type Paid struct {
	Status int
	Header http.Header
	Body   []byte

	PaymentID string
	OrderID   string
	Receipt   string // the payer's page
	// Outcome is settled or refused; "" of a gateway that does not say, or where nothing
	// was taken.
	Outcome  string
	Charged  bool // false: the answer cost nothing
	Replayed bool // it is the answer to an earlier request
}

// Pay makes a request that may have to be paid for, once for each key: the caller's own
// name for the purchase, such as the key of the effect in which it pays. The same key with
// the same request gives the same answer for ever, also after a crash; a second purchase
// of the same thing is another key. Only what is final is returned: where nobody knows,
// Pay waits and asks, for as long as its patience lasts.
func (p *Payer) Pay(ctx context.Context, key string, req *http.Request) (*Paid, error) {
	if key == "" {
		return nil, fmt.Errorf("%w: it has no key", ErrNotStored)
	}
	var body []byte
	if req.Body != nil {
		var err error
		body, err = io.ReadAll(req.Body)
		_ = req.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("couldn't read the request: %w", err)
		}
	}
	r := &purchase{key: key, req: req, body: body}
	in, err := p.store.begin(r)
	if err != nil {
		return nil, err
	}
	r.id, r.dir = in.PaymentID, p.store.folder(key)
	if done, err := p.store.answer(r.dir); err != nil || done != nil {
		return done, err
	}
	a, err := p.store.newest(r.dir)
	if err != nil {
		return nil, err
	}
	if a == nil {
		var free *Paid
		if a, free, err = p.firstOffer(ctx, r); err != nil || free != nil {
			return free, err
		}
	}
	return p.send(ctx, r, a)
}

// purchase is one call of Pay.
type purchase struct {
	key  string
	id   string // the payment id
	dir  string
	req  *http.Request
	body []byte
}

// firstOffer asks without paying, and signs what is asked for. free is the answer where
// nothing is.
func (p *Payer) firstOffer(ctx context.Context, r *purchase) (a *authorized, free *Paid, err error) {
	var resp *reply
	err = p.until(ctx, func(ctx context.Context) (wait time.Duration, done bool, err error) {
		if resp, err = p.once(ctx, r, nil); err != nil {
			return 0, false, fmt.Errorf("%w: %w", ErrNoAnswer, err)
		}
		if resp.later() {
			return resp.after(), false, resp.problem()
		}
		return 0, true, nil
	})
	switch {
	case err != nil:
		return nil, nil, err
	case resp.status == http.StatusPaymentRequired:
		a, err = p.authorize(ctx, r, resp, nil)
		return a, nil, err
	case resp.ok():
		return nil, resp.paid(r.id), nil
	}
	return nil, nil, resp.problem()
}

// mostSigned bounds what a gateway can make a payer sign for one purchase.
const mostSigned = 3

// authorize signs what a 402 asks for and stores it; before is what was signed last and is
// dead now.
func (p *Payer) authorize(ctx context.Context, r *purchase, resp *reply, before *authorized) (*authorized, error) {
	offer, err := resp.offer()
	if err != nil {
		return nil, err
	}
	next := authorized{N: 1, Quote: resp.header.Get(x402.QuoteHeader)}
	if before != nil {
		if before.N >= mostSigned {
			return nil, fmt.Errorf("%w: %d were signed already", ErrAskedAgain, before.N)
		}
		// The fingerprint of the purchase covers recipient, amount and quote: they stay.
		next.N, next.Quote = before.N+1, before.Quote
		var same []x402.Requirements
		for _, way := range offer.Accepts {
			if way.Same(before.Payment.Accepted) {
				same = append(same, way)
			}
		}
		if offer.Accepts = same; len(same) == 0 {
			return nil, fmt.Errorf("%w: it asks for another amount or recipient than was signed before", ErrAskedAgain)
		}
	} else if err := p.store.takeQuote(r, next.Quote); err != nil {
		return nil, err
	}
	chosen, payload, err := p.sign(ctx, offer)
	if err != nil {
		return nil, fmt.Errorf("couldn't sign: %w", err)
	}
	among := false
	for _, way := range offer.Accepts {
		among = among || way.Same(chosen)
	}
	if !among {
		return nil, errors.New("what was signed is none of the ways to pay that were offered")
	}
	next.Payment = x402.Payload{X402Version: x402.Version, Resource: offer.Resource, Accepted: chosen, Payload: payload, Extensions: offer.Extensions}
	if err := next.Payment.Identify(offer.Extensions, r.id); err != nil {
		return nil, err
	}
	if next.Sent, err = x402.Encode(next.Payment); err != nil {
		return nil, err
	}
	return p.store.authorize(r.dir, next)
}
