package refunds

import (
	"quittance/ledger/payments"
	store "quittance/ledger/refunds"
)

// NotYours says why it is not a person's turn: the next step takes somebody else. "" where
// they may take it. live is the attempt that is not over; nil where there is none.
func NotYours(f *payments.Refund, live *store.Payout, person int64) string {
	switch {
	case f.WriteOff.Sign() > 0 && f.WriteOffBy == person:
		return "You asked to write it off: another person decides that."
	case (f.State == Owed || f.State == Returned) && f.OpenedBy == person:
		return "You decided that it is given back: another person approves it."
	case (f.State == Owed || f.State == Returned) && f.DestinationBy == person:
		return "You said where it goes: another person approves it."
	case f.State == Approved && f.ApprovedBy == person:
		return "You approved it: another person sends it."
	case f.State == Sending && live != nil && live.MadeBy != person:
		return live.Maker + " is sending it, and records what became of it."
	case f.State == Sent && live != nil && live.MadeBy == person:
		return "You sent it: the network, or another person, says that it arrived."
	case f.State == Unknown && live != nil && live.MadeBy == person:
		return "You started to send it: that it did not go out, another person has to find."
	}
	return ""
}
