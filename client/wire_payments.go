package client

import (
	"encoding/json"
	"time"
)

// Payment ids, orders and transfers: what a gateway that sells paid calls asks. Amounts
// are whole numbers of the asset's smallest unit, as text of ASCII digits: "4200000" is
// 4.2 of a token with six decimals. Networks are CAIP-2 ("eip155:8453"), assets the
// token's contract, or whatever the rail calls it.

// The values of PaymentAnswer.Do besides DoProceed and DoReplay are refusals: problem
// documents with one of these codes.
const (
	CodePaymentInFlight = "payment_in_flight" // 409: ask again at Poll after RetryAfter; never sign again
	CodePaymentConflict = "payment_conflict"  // 409: Reason is payer or request
	CodePaymentSpent    = "payment_id_spent"  // 410: final long ago; OrderID says what became of it
	CodeSignAgain       = "sign_again"        // 402: every authorization of the id is dead; only now is a new one right
	CodeOrderFinal      = "order_final"       // 409: nothing may be done for an order that is over and not paid
)

// PaymentRequest claims a payment id, or asks what became of it.
type PaymentRequest struct {
	PaymentID     string         `json:"payment_id" doc:"Minted and stored by the payer before it sends: 16 to 128 of A-Z a-z 0-9 _ -."`
	Gateway       string         `json:"gateway" doc:"Which of the account's gateways asks; payment ids are unique within it."`
	Payer         string         `json:"payer" doc:"Who pays, as the rail names it. With a signature it must be who signed."`
	Request       *PaidRequest   `json:"request,omitempty" doc:"What is paid for. Either this or request_digest."`
	RequestDigest string         `json:"request_digest,omitempty" doc:"SHA-256 of what is paid for, in hex, where the gateway keeps the request to itself."`
	Amount        string         `json:"amount" doc:"In the asset's smallest unit."`
	Asset         string         `json:"asset"`
	Network       string         `json:"network"`
	PayTo         string         `json:"pay_to"`
	Quote         string         `json:"quote,omitempty" doc:"The offer that is taken up: one live or settled payment a quote."`
	Authorization *Authorization `json:"authorization,omitempty" doc:"The payer's signed permission to move the money, where the rail has one."`
	AttemptID     string         `json:"attempt_id,omitempty" doc:"Chosen by the gateway for each try of its own: the same one again gets the same answer again, while nobody took over."`
}

// PaidRequest is what is paid for. The tool's volatile fields are left out of the
// fingerprint.
type PaidRequest struct {
	Method    string          `json:"method" doc:"Such as POST."`
	Tool      string          `json:"tool" doc:"The endpoint or tool, as the policy names it."`
	Arguments json.RawMessage `json:"arguments,omitempty" doc:"An object."`
}

// Authorization is an EIP-3009 authorization: single use by its nonce. The signature is
// checked, never stored.
type Authorization struct {
	Nonce       string `json:"nonce" doc:"32 bytes, 0x and hex."`
	ValidAfter  string `json:"valid_after,omitempty" doc:"Unix seconds."`
	ValidBefore string `json:"valid_before" doc:"Unix seconds, exclusive."`
	Signature   string `json:"signature,omitempty" doc:"65 bytes, 0x and hex."`
}

// The values of PaymentAnswer.Work.
const (
	WorkNone     = "none"
	WorkTaken    = "taken"     // done already: never again
	WorkNotTaken = "not_taken" // proven not done
)

// The values of PaymentAnswer.Settles.
const (
	SettlesAfterWork  = "after_work"
	SettlesBeforeWork = "before_work"
)

// PaymentAnswer says what to do for a payment id: 201 to go on, 200 to replay.
type PaymentAnswer struct {
	Do        string `json:"do" enum:"proceed,replay"`
	Replayed  bool   `json:"replayed"`
	PaymentID string `json:"payment_id"`
	OrderID   string `json:"order_id"`
	Receipt   string `json:"receipt,omitempty" doc:"The payer's page."`

	// Set when Do is proceed.
	Fence      int64           `json:"fence,omitempty" doc:"To be given with work, broadcast, order and finish."`
	Paid       bool            `json:"paid,omitempty" doc:"The money has moved: the work and the finish only, no broadcast."`
	Work       string          `json:"work,omitempty" enum:"none,taken,not_taken" doc:"What is known of the work."`
	WorkResult json.RawMessage `json:"work_result,omitempty" doc:"Of work that was done; also of a replay that was healed and has no response."`
	Settles    string          `json:"settles,omitempty" enum:"after_work,before_work" doc:"In which order the policy has this gateway work: where it sends the payment before the work, a recorded broadcast does not mean that the work was done."`

	// Set when Do is replay.
	Outcome  string    `json:"outcome,omitempty" enum:"settled,refused"`
	Response *Response `json:"response,omitempty" doc:"The frozen answer, as it first went out; absent where nobody recorded one."`
	Healed   bool      `json:"healed,omitempty" doc:"Settled by its paid order, since nobody finished it."`

	Order  *Order  `json:"order,omitempty"`
	Refund *Refund `json:"refund,omitempty"`
}

// Response is an answer of the gateway, byte by byte.
type Response struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    []byte            `json:"body,omitempty" doc:"Base64."`
	Cut     bool              `json:"cut,omitempty" doc:"The body was above the stored limit, and is not kept."`
	Digest  string            `json:"digest,omitempty" doc:"SHA-256 of the whole body, in hex."`
}

// PaymentStep names the payment and the fence that its claim gave.
type PaymentStep struct {
	Gateway string `json:"gateway"`
	Fence   int64  `json:"fence"`
}

// PaymentWork records the work before it is done, as an effect of run
// payment/{gateway}/{payment_id}. Tool and arguments default to those of the claim.
type PaymentWork struct {
	PaymentStep
	Tool      string          `json:"tool,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// PaymentBroadcast records a payment before it is sent to its rail.
type PaymentBroadcast struct {
	PaymentStep
	Nonce string `json:"nonce,omitempty" doc:"Of the authorization that is sent, where the rail has one."`
	Hash  string `json:"hash,omitempty" doc:"Of the transaction, where it is known before."`
}

// PaymentOrder creates the order.
type PaymentOrder struct {
	PaymentStep
	Memo        string `json:"memo,omitempty" doc:"By which a transfer names the order, on a rail with memos: 32 bytes, 0x and hex."`
	Description string `json:"description,omitempty" doc:"What was bought, for the receipt."`
	ExpiresIn   int    `json:"expires_in,omitempty" doc:"Seconds; the payment time-out of the gateway's policy when absent."`
}

// The values of PaymentFinish.Outcome, with OutcomeUnknown. A facilitator's success:false, with or without a
// hash, and settlement_pending are unknown.
const (
	OutcomeSettled = "settled"
	OutcomeRefused = "refused"
)

// PaymentFinish records what became of a payment, and freezes the answer.
type PaymentFinish struct {
	PaymentStep
	Outcome  string    `json:"outcome" enum:"settled,refused,unknown"`
	Tx       string    `json:"tx,omitempty" doc:"The rail's reference, where it is known."`
	Why      string    `json:"why,omitempty" doc:"Of a refusal or an unknown, in a few words."`
	Response *Response `json:"response,omitempty" doc:"What the payer is answered; at most 256 KiB of body are kept."`
}

// PaymentCancel ends the order of a payment that nobody will pay.
type PaymentCancel struct {
	Gateway string `json:"gateway"`
}

// Payment is what is stored of a payment id.
type Payment struct {
	PaymentID string    `json:"payment_id"`
	Gateway   string    `json:"gateway"`
	State     string    `json:"state" enum:"in_flight,unknown,settled,refused,pruned"`
	Final     bool      `json:"final"`
	OrderID   string    `json:"order_id"`
	Receipt   string    `json:"receipt,omitempty"`
	Work      string    `json:"work" enum:"none,undecided,taken,not_taken"`
	Broadcast bool      `json:"broadcast"`
	Healed    bool      `json:"healed,omitempty"`
	ClaimedAt time.Time `json:"claimed_at"`
	Order     *Order    `json:"order,omitempty"`
	Refund    *Refund   `json:"refund,omitempty"`
}

// Order is what was asked for and how far it is paid.
type Order struct {
	OrderID   string     `json:"order_id"`
	Gateway   string     `json:"gateway"`
	State     string     `json:"state" enum:"created,paying,paid,failed,expired,cancelled"`
	Network   string     `json:"network"`
	Asset     string     `json:"asset"`
	Amount    string     `json:"amount"`
	Received  string     `json:"received" doc:"What arrived for it and was not taken back by a reorganisation."`
	PayTo     string     `json:"pay_to"`
	Memo      string     `json:"memo,omitempty"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	Transfers []Settled  `json:"transfers,omitempty"`
	Receipt   string     `json:"receipt,omitempty"`
	Refund    *Refund    `json:"refund,omitempty"`
}

// Settled is a transfer of an order.
type Settled struct {
	Tx       string `json:"tx"`
	Position int    `json:"position"`
	Amount   string `json:"amount"`
	Class    string `json:"class"`
	Final    bool   `json:"final"`
	Reverted bool   `json:"reverted,omitempty"`
}

// Refund is what must be given back for an order, all its transfers together.
type Refund struct {
	State    string `json:"state" doc:"owed, approved, sending, unknown, sent, confirmed, returned, held or written_off: the least advanced of its rows."`
	Amount   string `json:"amount"`
	Refunded string `json:"refunded"`
	Tx       string `json:"tx,omitempty" doc:"Of the last confirmed one."`
}

// Transfer is one incoming movement on a rail. A rail's own words stand in it, so that
// posting what was read twice says the same twice.
type Transfer struct {
	Network   string `json:"network"`
	Tx        string `json:"tx"`
	Position  int    `json:"position" doc:"Of its log within the receipt of its transaction, from 0: a block-wide index changes when a reorganised transaction is mined again."`
	Asset     string `json:"asset"`
	From      string `json:"from"`
	To        string `json:"to"`
	Amount    string `json:"amount"`
	Nonce     string `json:"nonce,omitempty" doc:"Of the authorization it used."`
	Memo      string `json:"memo,omitempty"`
	Gateway   string `json:"gateway,omitempty" doc:"With payment_id: which payment it is known to be for."`
	PaymentID string `json:"payment_id,omitempty"`
	OrderID   string `json:"order_id,omitempty"`
	Block     int64  `json:"block,omitempty"`
	BlockHash string `json:"block_hash,omitempty"`
	Final     bool   `json:"final,omitempty" doc:"Its block can no longer be reorganised away."`
	Reverted  bool   `json:"reverted,omitempty" doc:"It was reorganised away."`
}

// TransferAnswer says how it was classified.
type TransferAnswer struct {
	Class   string  `json:"class" enum:"applied,late,duplicate,under,unmatched,failed_call,given_back"`
	New     bool    `json:"new" doc:"It was not known before."`
	Over    string  `json:"over,omitempty" doc:"What it brought above what was asked."`
	OrderID string  `json:"order_id,omitempty"`
	Refund  *Refund `json:"refund,omitempty"`
}

// ReadRequest asks whether a read was paid for already, by the same payer, moments ago.
type ReadRequest struct {
	Gateway       string       `json:"gateway"`
	Payer         string       `json:"payer"`
	Request       *PaidRequest `json:"request,omitempty"`
	RequestDigest string       `json:"request_digest,omitempty"`
}

// ReadAnswer: charged (201, go on with read_id) or not (200, the first answer).
type ReadAnswer struct {
	Charged  bool      `json:"charged" doc:"False: nothing is taken for it; the gateway sends Quittance-Charged: false."`
	ReadID   string    `json:"read_id,omitempty"`
	Receipt  string    `json:"receipt,omitempty" doc:"Of the first."`
	Response *Response `json:"response,omitempty"`
}

// FinishRead stores a read's answer. One that failed is not reused.
type FinishRead struct {
	Outcome   string    `json:"outcome" enum:"taken,failed"`
	PaymentID string    `json:"payment_id,omitempty" doc:"The payment that paid for it."`
	Response  *Response `json:"response,omitempty"`
}
