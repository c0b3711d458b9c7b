package desk

import (
	"encoding/json"
	"strings"

	rows "quittance/ledger/payments"
	"quittance/views"
)

// moneyEvents says what each kind of event is, and how it looks on the line.
var moneyEvents = map[string][2]string{
	"claimed": {"plain", "The payer's id was claimed"}, "order_created": {"plain", "The order was created"}, "order_paying": {"plain", "The order waits for its payment"},
	"order_paid": {"ok", "The order is paid"}, "order_failed": {"stop", "The order failed"}, "order_expired": {"stop", "The order expired"}, "order_cancelled": {"stop", "The order was cancelled"},
	"settled": {"ok", "Its gateway settled the payment"}, "refused": {"stop", "Its gateway refused the payment"}, "unknown": {"unknown", "Nobody knows what became of the payment"},
	"broadcast": {"info", "The payment is sent to its rail"}, "healed": {"ok", "Settled from its paid order"}, "authorization_dead": {"info", "An authorization can move no money any more"},
	"conflict": {"danger", "Somebody used an id, a quote or an authorization that is not theirs"}, "answered": {"plain", "The answer was frozen"},
	"decision_asked": {"person", "A person says what became of it"}, "decided_settled": {"person", "Let go: it was settled"}, "decided_not_taken": {"person", "Let go: nothing was taken"},
	"decision_dropped": {"person", "The decision was dropped"}, "alerts_seen": {"person", "The alerts were seen"}, "contradicted": {"danger", "Money came, of which people had found that nothing was taken"},
	"settled_unpaid": {"danger", "Its gateway settled it, and nothing can pay its order any more"}, "final_reverted": {"danger", "A final transfer was told to be taken back"},
	"receipt_revoked": {"person", "The receipt's address was revoked"}, "taken_over": {"info", "Its gateway took it over again"}, "log_gap": {"unknown", "Unknown since a gap of the log"},
	"transfer_applied": {"ok", "Money came in and pays the order"}, "transfer_late": {"unknown", "Money came in after the order was over"}, "transfer_duplicate": {"unknown", "Money came in for an order that was paid"},
	"transfer_under": {"held", "Money came in, less than is asked"}, "transfer_unmatched": {"unknown", "Money came in, and no order is known"}, "transfer_final": {"info", "The transfer is final"},
	"transfer_reverted": {"danger", "The rail took the transfer back"}, "transfer_back": {"info", "The transfer is there again"}, "transfer_topped_up": {"ok", "What was held pays the order now"},
	"transfer_held_again": {"held", "Held again: another part was taken back"}, "transfer_less_over": {"info", "Less is over: another part was taken back"}, "transfer_failed_call": {"unknown", "What it paid for was not done"},
	"transfer_given_back": {"person", "Decided: it is given back"}, "transfer_matched": {"person", "Matched to its order by hand"},
	"refund_owed": {"unknown", "Owed back"}, "refund_changed": {"info", "What is owed changed"}, "refund_approved": {"person", "Approved"}, "refund_withdrawn": {"person", "The approval was withdrawn"},
	"refund_held": {"held", "Held"}, "refund_released": {"person", "Released"}, "refund_redirected": {"person", "It goes somewhere else"}, "refund_sending": {"info", "Somebody is sending it"},
	"refund_sent": {"info", "Recorded as sent"}, "refund_unknown": {"unknown", "Nobody knows whether it was sent"}, "refund_not_sent": {"stop", "It did not arrive"}, "refund_confirmed": {"ok", "Refunded: it was seen to arrive"},
	"refund_returned": {"danger", "It came back and is owed again"}, "refund_landed": {"danger", "A payment that was given up arrived after all"},
	"refund_write_off_asked": {"person", "Asked to write it off"}, "refund_write_off_dropped": {"person", "It is not written off"}, "refund_written_off": {"stop", "Written off"},
	// Of recoveries.
	"opened": {"unknown", "Money may have left twice"}, "confirmed": {"person", "It left twice"}, "dismissed": {"person", "Nothing left twice"}, "received": {"ok", "Something came back"},
	"written_off": {"stop", "What is left is given up"}, "assigned": {"person", "Somebody looks after it"}, "acknowledged": {"person", "It left twice; how much has to be said"},
}

// eventShown is how much of a note stands on the line.
const eventShown = 600

// moneyHistory tells events of payments, transfers and refunds.
func (d *Desk) moneyHistory(r *request, events []rows.Event) (out []views.Event) {
	for i, e := range events {
		known, ok := moneyEvents[e.Kind]
		if !ok {
			known = [2]string{"plain", capital(strings.ReplaceAll(e.Kind, "_", " "))}
		}
		v := views.Event{At: r.short(e.At), Kind: known[0], Title: note(known[1]), Detail: show(eventDetail(e.Person, e.Data), eventShown, true)}
		if i == 0 || !r.sameDay(events[i-1].At, e.At) {
			v.Day = r.day(e.At)
		}
		out = append(out, v)
	}
	return out
}

// eventDetail is who did it, what they wrote, and what a network said.
func eventDetail(person, data string) string {
	var x struct {
		Note, Tx, To, Said, Why, Claim, Reference string
	}
	_ = json.Unmarshal([]byte(data), &x) // ours; what has another shape says less
	var words []string
	for _, w := range [][2]string{{"by ", person}, {"", x.Note}, {"reference ", x.Tx}, {"to ", x.To}, {"", x.Said}, {"", x.Why}, {"claim ", x.Claim}, {"reference ", x.Reference}} {
		if w[1] != "" {
			words = append(words, w[0]+w[1])
		}
	}
	return strings.Join(words, " · ")
}
