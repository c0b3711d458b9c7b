package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"quittance/client/x402"
)

// Facilitator checks payments and sends them to their rail. An error means that its answer
// is not known. A settlement without success proves nothing either: it is taken as unknown,
// and so is a verification that fails because the authorization is used or pending.
type Facilitator interface {
	Verify(ctx context.Context, p x402.Payload, r x402.Requirements) (x402.Verification, error)
	Settle(ctx context.Context, p x402.Payload, r x402.Requirements) (x402.Settlement, error)
}

// HTTPFacilitator asks a facilitator of x402 over HTTP.
type HTTPFacilitator struct {
	URL    string       // to which /verify and /settle are added
	Header http.Header  // such as Authorization
	Client *http.Client // http.DefaultClient when nil
}

// Verify asks whether a payment would be taken.
func (f *HTTPFacilitator) Verify(ctx context.Context, p x402.Payload, r x402.Requirements) (v x402.Verification, err error) {
	var said struct {
		x402.Verification
		Valid *bool `json:"isValid"`
	}
	status, err := f.ask(ctx, "/verify", p, r, &said)
	switch {
	case err != nil:
		return v, err
	case said.Valid == nil, status >= 500:
		return v, fmt.Errorf("the facilitator answered %d without a verdict", status)
	}
	said.IsValid = *said.Valid && status < 300
	return said.Verification, nil
}

// Settle sends a payment. The settlement may name a transaction also beside an error.
func (f *HTTPFacilitator) Settle(ctx context.Context, p x402.Payload, r x402.Requirements) (s x402.Settlement, err error) {
	status, err := f.ask(ctx, "/settle", p, r, &s)
	if err == nil && (status < 200 || status > 299) {
		s.Success = false
		err = fmt.Errorf("the facilitator answered %d", status)
	}
	return s, err
}

func (f *HTTPFacilitator) ask(ctx context.Context, path string, p x402.Payload, r x402.Requirements, answer any) (status int, err error) {
	body, err := json.Marshal(map[string]any{"x402Version": x402.Version, "paymentPayload": p, "paymentRequirements": r})
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(f.URL, "/")+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	for name, values := range f.Header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	c := f.Client
	if c == nil {
		c = http.DefaultClient
	}
	direct := *c // a redirect could carry the payment, or our credentials, elsewhere
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := direct.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return 0, err
	}
	if err := json.Unmarshal(raw, answer); err != nil {
		return resp.StatusCode, fmt.Errorf("the facilitator answered %d without the JSON it should hold", resp.StatusCode)
	}
	return resp.StatusCode, nil
}

// definite are the reasons of a verification that say something about what was signed, or
// about a balance, and nothing about whether it was used: such a payment is refused. Every
// other reason, known or not, is unknown. An authorization whose time is over is among
// them: only the chain tells whether it was used in time.
var definite = map[string]bool{
	"invalid_exact_evm_scheme": true, "invalid_exact_evm_network_mismatch": true, "invalid_exact_evm_recipient_mismatch": true,
	"invalid_exact_evm_signature": true, "invalid_exact_evm_failed_to_parse_signature": true, "invalid_exact_evm_missing_eip712_domain": true,
	"invalid_exact_evm_token_name_mismatch": true, "invalid_exact_evm_token_version_mismatch": true, "invalid_exact_evm_eip3009_not_supported": true,
	"invalid_exact_evm_authorization_value": true, "invalid_exact_evm_payload_authorization_value_mismatch": true,
	"invalid_exact_evm_insufficient_balance": true, "insufficient_funds": true,
	"invalid_payload": true, "invalid_payment_requirements": true, "invalid_scheme": true, "unsupported_scheme": true, "invalid_network": true, "invalid_x402_version": true,
}
