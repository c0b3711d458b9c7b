package refunds_test

import (
	"context"

	"quittance/reconcile/access"
	"quittance/reconcile/payments"
	"quittance/reconcile/refunds"
)

// refundStep does one thing to one refund, or gives one transfer back.
func (w *walk) refundStep(ctx context.Context, n int) {
	var free []string
	w.must(w.db.Select(ctx, &free, `SELECT id FROM transfers WHERE class IN ('unmatched','under') AND reverted_at IS NULL ORDER BY id LIMIT 5`))
	if len(free) > 0 && w.rnd.IntN(4) == 0 {
		_, err := w.pay.GiveBack(ctx, payments.ByHand{By: w.cem, Transfer: free[w.rnd.IntN(len(free))], Note: "walk"})
		w.note("give back", err)
		return
	}
	var ids []string
	w.must(w.db.Select(ctx, &ids, `SELECT id FROM refunds f WHERE $1 OR state IN ('approved','sending','sent','unknown','confirmed')
		OR state = 'owed' AND EXISTS (SELECT FROM transfers t WHERE t.id = f.transfer_id AND t.final) ORDER BY (state IN ('owed','confirmed')), id LIMIT 6`, w.rnd.IntN(4) == 0))
	if len(ids) == 0 {
		return
	}
	id := ids[w.rnd.IntN(len(ids))]
	by := []access.MadeBy{w.ada, w.ben, w.cem}[w.rnd.IntN(3)]
	a := w.act(by, id)
	tx := hash(90_000 + n)
	rest := w.refund(id).Rest().String()
	if len(rest) > 1 && w.rnd.IntN(2) == 0 {
		rest = rest[:1]
	}
	part := "0.000" + "000"[:3-len(rest)] + rest
	switch w.rnd.IntN(12) {
	case 0, 1:
		a.By = w.ada
		w.note("approve", w.Approve(ctx, a))
	case 2, 3:
		a.By = w.ben
		if w.note("send", w.Send(ctx, a, refunds.Reference{Tx: tx, Amount: part})) && w.rnd.IntN(2) == 0 {
			w.net.show(tx, refunds.Sight{Seen: refunds.Arrived, Final: true, Block: int64(n)})
		}
	case 4, 5:
		before := w.arrivals()
		w.must(w.exec(`UPDATE payouts SET check_at = clock_timestamp() WHERE check_at IS NOT NULL`))
		w.must(w.Tick(ctx))
		w.done["arrive"] += w.arrivals() - before
	case 6:
		w.note("give up", w.GiveUp(ctx, a))
	case 7:
		for _, p := range w.payouts(id) {
			if p.State == "confirmed" {
				w.note("come back", w.CameBack(ctx, a, refunds.Back{Payout: p.ID, Tx: hash(95_000 + n)}))
				return
			}
		}
	case 8:
		if w.note("ask", w.AskWriteOff(ctx, a, part)) {
			a.By = w.ada
			w.note("write off", w.WriteOff(ctx, a))
		}
	case 9:
		if w.rnd.IntN(3) == 0 {
			w.note("hold", w.Hold(ctx, a))
		}
	case 10:
		w.note("release", w.Release(ctx, a))
	case 11:
		w.note("start", w.Start(ctx, a, part))
	}
}

func (w *walk) arrivals() (n int) {
	w.t.Helper()
	w.get(&n, `SELECT count(*) FROM payouts WHERE state = 'confirmed'`)
	return n
}
