// Package x402 holds the words that a payer and a gateway say to each other over HTTP:
// version 2 of the x402 protocol, scheme "exact", as the npm packages @x402/* 2.27 speak
// it, and Quittance's own headers beside it.
//
// A gateway answers 402 with [RequiredHeader]; the payer sends the same request again with
// [SignatureHeader]; a paid answer has [ResponseHeader]. Each holds base64 of JSON.
package x402

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// Version is the protocol's.
const Version = 2

// The headers of x402.
const (
	RequiredHeader  = "PAYMENT-REQUIRED"
	SignatureHeader = "PAYMENT-SIGNATURE"
	ResponseHeader  = "PAYMENT-RESPONSE"
)

// Our own. A payment id is also understood, and sent, as x402's extension
// [PaymentIdentifier].
const (
	PaymentIDHeader = "Quittance-Payment-Id" // of the payer, and repeated in every answer about it
	QuoteHeader     = "Quittance-Quote"      // of a 402; the payer sends it back: one live or settled payment a quote
	OutcomeHeader   = "Quittance-Outcome"    // settled or refused: the answer is final and will not be another
	ReplayedHeader  = "Quittance-Replayed"   // true: it is the answer to an earlier request
	OrderHeader     = "Quittance-Order"
	ReceiptHeader   = "Quittance-Receipt" // the payer's page
	ChargedHeader   = "Quittance-Charged" // false: nothing was taken for this answer
	MemoHeader      = "Quittance-Memo"    // the memo of the transfer that pays, of SchemeMemo
)

// Outcomes in [OutcomeHeader].
const (
	Settled = "settled"
	Refused = "refused"
)

// PaymentIdentifier is x402's extension that carries a payment id. Its syntax is ours: 16
// to 128 of A-Z a-z 0-9 _ -.
const PaymentIdentifier = "payment-identifier"

// Required is what a 402 asks for.
type Required struct {
	X402Version int                        `json:"x402Version"`
	Error       string                     `json:"error,omitempty"`
	Resource    *Resource                  `json:"resource,omitempty"`
	Accepts     []Requirements             `json:"accepts"`
	Extensions  map[string]json.RawMessage `json:"extensions,omitempty"`
}

// Resource is what is sold.
type Resource struct {
	URL         string `json:"url"`
	Description string `json:"description,omitempty"`
	MimeType    string `json:"mimeType,omitempty"`
}

// Requirements is one way to pay. Amount is in the asset's smallest unit.
type Requirements struct {
	Scheme            string         `json:"scheme"`
	Network           string         `json:"network"`
	Asset             string         `json:"asset"`
	Amount            string         `json:"amount"`
	PayTo             string         `json:"payTo"`
	MaxTimeoutSeconds int            `json:"maxTimeoutSeconds"`
	Extra             map[string]any `json:"extra"`
}

// Same tells that two ways to pay move the same money to the same recipient. Addresses and
// contracts of EVM networks differ in case only where they do not differ.
func (r Requirements) Same(o Requirements) bool {
	same := func(a, b string) bool {
		return a == b || strings.HasPrefix(r.Network, "eip155:") && strings.EqualFold(a, b)
	}
	return r.Scheme == o.Scheme && r.Network == o.Network && r.Amount == o.Amount && same(r.Asset, o.Asset) && same(r.PayTo, o.PayTo)
}

// Payload is a payment: the way that was chosen, and what was signed for it. Payload and
// the extensions stay the bytes that they are.
type Payload struct {
	X402Version int                        `json:"x402Version"`
	Resource    *Resource                  `json:"resource,omitempty"`
	Accepted    Requirements               `json:"accepted"`
	Payload     json.RawMessage            `json:"payload"`
	Extensions  map[string]json.RawMessage `json:"extensions,omitempty"`
}

// Exact is the payload of scheme "exact" on EVM networks: an EIP-3009 authorization.
type Exact struct {
	Signature     string        `json:"signature"`
	Authorization Authorization `json:"authorization"`
}

// SchemeMemo is ours: the payer sends the money itself, in a transfer that carries the 32
// bytes which the gateway names for the payment id.
const SchemeMemo = "memo"

// Carried is the payload of [SchemeMemo]: the transaction that paid, once there is one.
type Carried struct {
	Transaction string `json:"transaction,omitempty"`
}

// Authorization is signed by From: Value of the asset may go to To once, before
// ValidBefore, by whoever submits it.
type Authorization struct {
	From        string `json:"from"`
	To          string `json:"to"`
	Value       string `json:"value"`
	ValidAfter  string `json:"validAfter"`
	ValidBefore string `json:"validBefore"`
	Nonce       string `json:"nonce"`
}

// Verification is what a facilitator says of a payment that was not sent yet.
type Verification struct {
	IsValid        bool   `json:"isValid"`
	InvalidReason  string `json:"invalidReason,omitempty"`
	InvalidMessage string `json:"invalidMessage,omitempty"`
	Payer          string `json:"payer,omitempty"`
}

// Settlement is what a facilitator says of a payment that it sent. Success false proves
// nothing: it may have been sent all the same.
type Settlement struct {
	Success      bool   `json:"success"`
	ErrorReason  string `json:"errorReason,omitempty"`
	ErrorMessage string `json:"errorMessage,omitempty"`
	Payer        string `json:"payer,omitempty"`
	Transaction  string `json:"transaction"`
	Network      string `json:"network"`
}

// identifier is the extension that carries a payment id.
type identifier struct {
	Info struct {
		Required bool   `json:"required"`
		ID       string `json:"id,omitempty"`
	} `json:"info"`
	Schema json.RawMessage `json:"schema,omitempty"`
}

var identifierSchema = json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",` +
	`"properties":{"required":{"type":"boolean"},"id":{"type":"string","minLength":16,"maxLength":128,"pattern":"^[a-zA-Z0-9_-]+$"}},"required":["required"]}`)

// OfferIdentifier is the extension with which a 402 says that payment ids are understood.
func OfferIdentifier(required bool) json.RawMessage {
	x := identifier{Schema: identifierSchema}
	x.Info.Required = required
	raw, _ := json.Marshal(x)
	return raw
}

// Identify writes a payment id into a payload, where the 402 offers the extension: what it
// holds besides the id stays as it was offered.
func (p *Payload) Identify(offered map[string]json.RawMessage, id string) error {
	raw, ok := offered[PaymentIdentifier]
	if !ok {
		return nil
	}
	var x map[string]json.RawMessage
	var info map[string]json.RawMessage
	if err := json.Unmarshal(raw, &x); err != nil {
		return fmt.Errorf("couldn't read the extension %s: %w", PaymentIdentifier, err)
	}
	if err := json.Unmarshal(x["info"], &info); err != nil || info == nil {
		info = map[string]json.RawMessage{"required": json.RawMessage("false")}
	}
	quoted, err := json.Marshal(id)
	if err != nil {
		return err
	}
	info["id"] = quoted
	if x["info"], err = json.Marshal(info); err != nil {
		return err
	}
	if raw, err = json.Marshal(x); err != nil {
		return err
	}
	if p.Extensions == nil {
		p.Extensions = map[string]json.RawMessage{}
	}
	p.Extensions[PaymentIdentifier] = raw
	return nil
}

// Identifier is the payment id that a payload carries; "" without one.
func (p *Payload) Identifier() string {
	var x identifier
	if json.Unmarshal(p.Extensions[PaymentIdentifier], &x) != nil {
		return ""
	}
	return x.Info.ID
}

// Encode writes a header's value.
func Encode(v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(raw), nil
}

// Decode reads a header's value.
func Decode[T any](header string) (v T, err error) {
	raw, err := base64.StdEncoding.DecodeString(header)
	if err != nil {
		return v, fmt.Errorf("is not base64")
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return v, fmt.Errorf("is not the JSON that it should hold")
	}
	return v, nil
}
