package payments

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"quittance/ledger/money"
	"quittance/ledger/payments"
	"quittance/reconcile/canon"
)

// Asked is a claim as a gateway sends it.
type Asked struct {
	Account       int64
	Gateway       string
	PaymentID     string
	Payer         string
	Method, Tool  string
	Arguments     []byte // JSON; nil where a digest stands for the request
	HasRequest    bool
	RequestDigest string
	Amount        string
	Asset         string
	Network       string
	PayTo         string
	Quote         string
	Authorization *Offered
	AttemptID     string
}

// Offered is an authorization as a payer signed it.
type Offered struct{ Nonce, ValidAfter, ValidBefore, Signature string }

// asked is a claim that was understood.
type asked struct {
	payments.Claimed
	attempt string
	auth    *payments.Authorization // nil: none is brought
}

var (
	paymentID = regexp.MustCompile(`^[A-Za-z0-9_-]{16,128}$`)
	nonce32   = regexp.MustCompile(`^0x[0-9a-f]{64}$`)
	address20 = regexp.MustCompile(`^0x[0-9a-f]{40}$`)
	hash32    = nonce32
)

// isUUID tells an id as we write it: of the other spellings PostgreSQL does not read all.
func isUUID(s string) bool { return len(s) == 36 && uuid.Validate(s) == nil }

// evm tells a network of which names and hashes are the same in either case.
func evm(network string) bool { return strings.HasPrefix(network, "eip155:") }

// same is a name of a network in the form it is compared in.
func same(network, text string) string {
	if evm(network) {
		return strings.ToLower(text)
	}
	return text
}

// faults collects what is wrong with a request.
type faults []Fault

func (f *faults) add(pointer, detail string) { *f = append(*f, Fault{pointer, detail}) }

// text wants 1 to most bytes of printable text.
func (f *faults) text(pointer, s string, most int) string {
	switch {
	case s == "":
		f.add(pointer, "is required")
	case len(s) > most:
		f.add(pointer, "has more than "+strconv.Itoa(most)+" bytes")
	case strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		f.add(pointer, "holds a control character")
	}
	return s
}

// name is a text of a network, in the form it is compared in; on EVM networks an address.
func (f *faults) name(pointer, network, s string) string {
	s = same(network, f.text(pointer, s, 128))
	if evm(network) && s != "" && !address20.MatchString(s) {
		f.add(pointer, "must be an address: 0x and 40 hex digits")
	}
	return s
}

func (f *faults) amount(pointer, s string) money.Atomic {
	a, err := money.AtomicOf(s)
	switch {
	case err != nil:
		f.add(pointer, err.Error())
	case a.Sign() == 0:
		f.add(pointer, "must not be zero")
	}
	return a
}

// refuse is the refusal of what was found, nil if nothing.
func (f faults) refuse() error {
	if len(f) == 0 {
		return nil
	}
	return &Refusal{Code: CodeInvalid, Faults: f}
}

// read understands a claim.
func (e *Engine) read(in Asked) (asked, error) {
	var f faults
	a := asked{attempt: in.AttemptID}
	a.Account = in.Account
	if a.PaymentID = in.PaymentID; !paymentID.MatchString(in.PaymentID) {
		f.add("/payment_id", "must be 16 to 128 of A-Z a-z 0-9 _ -")
	}
	a.Gateway = f.text("/gateway", in.Gateway, 128)
	a.Network = f.text("/network", in.Network, 128)
	a.Asset = f.name("/asset", in.Network, in.Asset)
	a.PayTo = f.name("/pay_to", in.Network, in.PayTo)
	a.Payer = f.name("/payer", in.Network, in.Payer)
	a.Amount = f.amount("/amount", in.Amount)
	if in.Quote != "" {
		a.Quote = f.text("/quote", in.Quote, 512)
	}
	if len(in.AttemptID) > 256 {
		f.add("/attempt_id", "has more than 256 bytes")
	}
	request := e.request(&f, &a.Claimed, in)
	if in.Authorization != nil {
		a.auth = e.authorization(&f, a.Claimed, *in.Authorization)
	}
	if err := f.refuse(); err != nil {
		return asked{}, err
	}
	if in.Authorization != nil {
		var err error
		if a.auth.Signed, err = e.signed(a.Claimed, *in.Authorization); err != nil {
			return asked{}, err
		}
	}
	a.Fingerprint = fingerprint("quittance payment 1", a.Gateway, request, a.Amount.String(), a.Asset, a.Network, a.PayTo, a.Quote)
	return a, nil
}

// fingerprint is a digest over parts, each with its length: nothing glued together can be
// read in two ways.
func fingerprint(parts ...string) []byte {
	h := sha256.New()
	for _, part := range parts {
		h.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	return h.Sum(nil)
}

// lowerHex is a payer whose network is not known: addresses in hex differ in case only.
func lowerHex(payer string) string {
	if strings.HasPrefix(payer, "0x") {
		return strings.ToLower(payer)
	}
	return payer
}

// request reads what is paid for, and returns its digest. What is stored of it is
// redacted, and so is what the digest is made of: the same secret gives the same form.
func (e *Engine) request(f *faults, c *payments.Claimed, in Asked) string {
	switch {
	case in.HasRequest && in.RequestDigest != "":
		f.add("/request_digest", "must be absent where the request is given")
		return ""
	case in.HasRequest:
		c.Method, c.Tool = f.text("/request/method", in.Method, 32), f.text("/request/tool", in.Tool, 256)
		raw := in.Arguments
		if len(raw) == 0 {
			raw = []byte("{}")
		}
		tool := e.policy().Tool(c.Tool)
		args, text, err := e.arguments(tool, raw)
		if err != nil {
			f.add("/request/arguments", err.Error())
			return ""
		}
		c.Arguments = text
		digest := canon.CallDigest(c.Method+" "+c.Tool, args.Without(tool.Volatile))
		return digest.String()
	case in.RequestDigest != "":
		raw, err := hex.DecodeString(in.RequestDigest)
		if err != nil || len(raw) != 32 {
			f.add("/request_digest", "must be a SHA-256 in hex")
		}
		return "digest:" + strings.ToLower(in.RequestDigest)
	}
	f.add("/request", "is required, or request_digest")
	return ""
}

func (e *Engine) authorization(f *faults, c payments.Claimed, in Offered) *payments.Authorization {
	a := &payments.Authorization{Network: c.Network, Asset: c.Asset, Payer: c.Payer, Nonce: same(c.Network, in.Nonce)}
	if evm(c.Network) {
		if !nonce32.MatchString(a.Nonce) {
			f.add("/authorization/nonce", "must be 32 bytes: 0x and 64 hex digits")
		}
	} else {
		f.text("/authorization/nonce", a.Nonce, 128)
	}
	a.ValidBefore = f.seconds("/authorization/valid_before", in.ValidBefore)
	if in.ValidAfter != "" {
		f.seconds("/authorization/valid_after", in.ValidAfter)
	}
	return a
}

// seconds reads Unix seconds.
func (f *faults) seconds(pointer, s string) int64 {
	n, err := money.AtomicOf(s)
	if err != nil {
		f.add(pointer, "must be Unix seconds, in ASCII digits")
		return 0
	}
	v, err := strconv.ParseInt(n.String(), 10, 64)
	if err != nil || v > 1<<53 || v < 1 && pointer == "/authorization/valid_before" {
		f.add(pointer, "must be Unix seconds from 1 to 2^53")
		return 0
	}
	return v
}
