package desk_test

import (
	"fmt"

	"quittance/ledger/ledgertest"
)

// seed fills the database as a busy installation would look, with a page of audit for
// each ten effects.
func (w *world) seed(total, open int) {
	w.t.Helper()
	ledgertest.Fill(w.t, w.db, ledgertest.Stored{Account: w.account, First: 1, Last: total, Open: open})
	w.exec(fmt.Sprintf(`INSERT INTO audit (at, person_id, actor, via, action, outcome, subject) SELECT now() - make_interval(secs => i), %d, 'Petra Lind', 'page', 'effect.decide', 'done', 'effect:x'
		FROM generate_series(1, %d) AS i`, w.petra.ID, max(1, total/10)))
	w.exec(`VACUUM ANALYZE audit`)
}
