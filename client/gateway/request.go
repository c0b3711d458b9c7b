package gateway

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"quittance/client"
	"quittance/client/x402"
)

// try is one paid request at work.
type try struct {
	g     *Gateway
	route *Route
	h     http.Handler
	r     *http.Request
	body  []byte
	ways  []x402.Requirements

	id       string
	payment  x402.Payload
	exact    x402.Exact   // of scheme exact
	carried  x402.Carried // of scheme memo
	memo     string       // of scheme memo: the transfer's
	claim    client.PaymentRequest
	verified bool
	readID   string // of a cacheable read that is charged

	orderID, receipt string
}

var paymentID = regexp.MustCompile(`^[A-Za-z0-9_-]{16,128}$`)

// understand reads what a payer sent. The fault is for it.
func (t *try) understand(header string) error {
	var err error
	if t.payment, err = x402.Decode[x402.Payload](header); err != nil {
		return fmt.Errorf("the header %s %w", x402.SignatureHeader, err)
	}
	way := t.payment.Accepted
	switch {
	case t.payment.X402Version != x402.Version:
		return errors.New("this gateway speaks version 2 of x402")
	case way.Scheme == x402.SchemeMemo:
		return t.understandMemo()
	case way.Scheme != "exact" || !strings.HasPrefix(way.Network, "eip155:"):
		return errors.New("this gateway takes scheme exact on EVM networks")
	case json.Unmarshal(t.payment.Payload, &t.exact) != nil || t.exact.Authorization.Nonce == "":
		return errors.New("the payload holds no EIP-3009 authorization")
	case !strings.EqualFold(t.exact.Authorization.To, way.PayTo):
		return errors.New("the authorization is for another recipient than the payment says")
	case t.exact.Authorization.Value != way.Amount:
		return errors.New("the authorization is for another amount than the payment says")
	}
	if err := t.identify(); err != nil {
		return err
	}
	asked, err := t.asked()
	if err != nil {
		return err
	}
	a := t.exact.Authorization
	t.claim = client.PaymentRequest{
		PaymentID: t.id, Gateway: t.g.Name, Payer: a.From, Request: asked, Amount: way.Amount, Asset: way.Asset, Network: way.Network, PayTo: way.PayTo,
		Quote:         t.r.Header.Get(x402.QuoteHeader),
		Authorization: &client.Authorization{Nonce: a.Nonce, ValidAfter: a.ValidAfter, ValidBefore: a.ValidBefore, Signature: t.exact.Signature},
		AttemptID:     t.g.instance + "-" + t.id,
	}
	return nil
}

// identify finds the payment id: in our header, in x402's extension, or else made of the
// authorization.
func (t *try) identify() error {
	header, extension := t.r.Header.Get(x402.PaymentIDHeader), t.payment.Identifier()
	switch {
	case header != "" && extension != "" && header != extension:
		return errors.New("header and extension name two payment ids")
	case header != "":
		t.id = header
	case extension != "":
		t.id = extension
	case t.route.RequireID || t.payment.Accepted.Scheme == x402.SchemeMemo:
		return errors.New("a payment id is required: mint one and store it before you pay")
	default:
		t.id = "nonce_" + strings.TrimPrefix(strings.ToLower(t.exact.Authorization.Nonce), "0x")
	}
	if !paymentID.MatchString(t.id) {
		return errors.New("a payment id has 16 to 128 of A-Z a-z 0-9 _ -")
	}
	return nil
}

// asked is what is bought.
func (t *try) asked() (*client.PaidRequest, error) {
	out := &client.PaidRequest{Method: t.r.Method, Tool: t.route.Tool}
	if out.Tool == "" {
		out.Tool = t.r.URL.Path
	}
	if t.route.Arguments != nil {
		var err error
		out.Arguments, err = t.route.Arguments(t.r, t.body)
		return out, err
	}
	object := bytes.HasPrefix(bytes.TrimLeft(t.body, " \t\r\n"), []byte("{")) && json.Valid(t.body)
	// Where one name may stand for several paths, the path is what tells purchases apart.
	exact := t.r.Pattern != "" && !strings.Contains(t.r.Pattern, "{") && !strings.HasSuffix(t.r.Pattern, "/")
	path := t.route.Tool != "" && !exact
	query := t.r.URL.Query()
	if object && !path && len(query) == 0 {
		out.Arguments = t.body
		return out, nil
	}
	whole := map[string]any{}
	if path {
		whole["path"] = t.r.URL.Path
	}
	if len(query) > 0 {
		whole["query"] = query
	}
	switch {
	case object:
		whole["body"] = json.RawMessage(t.body)
	case len(t.body) > 0:
		whole["body"] = base64.StdEncoding.EncodeToString(t.body)
	}
	raw, err := json.Marshal(whole)
	out.Arguments = raw
	return out, err
}

// offered tells that what the payer pays is what is asked for now.
func (t *try) offered() bool {
	for _, way := range t.ways {
		if way.Same(t.payment.Accepted) {
			return true
		}
	}
	return false
}

// read takes the body of a request, up to the limit.
func (g *Gateway) read(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, g.BodyLimit+1))
	if err == nil && int64(len(body)) > g.BodyLimit {
		err = errTooLarge
	}
	return body, err
}

var errTooLarge = errors.New("the body is too large")
