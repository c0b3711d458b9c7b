package effects

import (
	"context"
	"crypto/sha256"
	"testing"

	"quittance/ledger"

	store "quittance/ledger/effects"
)

// Two rules stand in SQL as well, since they are asked of effects that nobody loaded:
// what keeps a run paused, and what holds a claim. Every shape must be answered alike.
func TestRulesInSQLAreTheRulesInGo(t *testing.T) {
	t.Parallel()
	withRun(t, func(ctx context.Context, tx *ledger.Tx) {
		claim := sha256.Sum256(nil) // of what put stores
		for _, f := range allFacts() {
			if f.State == None {
				continue
			}
			for _, contradicted := range []bool{false, true} {
				mustExec(t, ctx, tx, `SAVEPOINT shape`)
				if err := put(ctx, tx, f); err != nil {
					t.Fatalf("%s: %v", shapeText(f), err)
				}
				if contradicted {
					mustExec(t, ctx, tx, `UPDATE effects SET contradictions = 1, version = version + 1`)
				}
				var row struct {
					ID  string `db:"id"`
					Run int64  `db:"run_id"`
				}
				get(t, ctx, tx, &row, `SELECT id, run_id FROM effects`)
				blocked, err := store.Blocked(ctx, tx, []int64{row.Run})
				if err != nil {
					t.Fatal(err)
				}
				if want := PausesRun(f, contradicted); blocked[row.Run] != want {
					t.Errorf("%s, contradicted %v: SQL says that it pauses its run: %v, want %v", shapeText(f), contradicted, blocked[row.Run], want)
				}
				for _, call := range bools {
					mustExec(t, ctx, tx, `SAVEPOINT claim`)
					mustExec(t, ctx, tx, `
						INSERT INTO business_claims (digest, account_id, tool, effect_id, taken_at)
						SELECT claim, account_id, tool, id, now() FROM effects`)
					if err := store.DropClaims(ctx, tx, []store.Dropped{{Digest: claim[:], Effect: row.ID, Call: call}}); err != nil {
						t.Fatal(err)
					}
					var held bool
					get(t, ctx, tx, &held, `SELECT EXISTS (SELECT 1 FROM business_claims)`)
					if want := HoldsClaim(f, call); held != want {
						t.Errorf("%s, a claim on the call %v: SQL says that it is held: %v, want %v", shapeText(f), call, held, want)
					}
					mustExec(t, ctx, tx, `ROLLBACK TO claim`)
				}
				mustExec(t, ctx, tx, `ROLLBACK TO shape`)
			}
		}
	})
}
