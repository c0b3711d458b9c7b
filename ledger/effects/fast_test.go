package effects

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"quittance/ledger"
	"quittance/ledger/ledgertest"
)

// A plan is kept as long as its session, and made while the tables are still empty: it
// must find every row by a key even so.
func TestFastStatementsFindRowsByTheirKeys(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	for name, s := range map[string]struct {
		query, first string
		fields       fields
	}{
		"begin":  {fastBegins, "bytea, bigint", fastBeginFields},
		"finish": {fastFinishes, "text[]", fastFinishFields},
	} {
		types := s.first + ", " + strings.Join(s.fields.types, "[], ") + "[]"
		nulls := strings.TrimSuffix(strings.Repeat("NULL, ", strings.Count(types, ",")+1), ", ")
		var plan []string
		err := db.InTx(t.Context(), func(ctx context.Context, tx *ledger.Tx) error {
			if _, err := tx.Raw().ExecContext(ctx, "PREPARE planned_"+name+" ("+types+") AS "+s.query); err != nil {
				return err
			}
			rows, err := tx.Raw().QueryContext(ctx, "EXPLAIN (COSTS OFF) EXECUTE planned_"+name+" ("+nulls+")")
			if err != nil {
				return err
			}
			defer func() { _ = rows.Close() }()
			for rows.Next() {
				var line string
				if err := rows.Scan(&line); err != nil {
					return err
				}
				plan = append(plan, line)
			}
			return rows.Err()
		})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		scans := 0
		for i, line := range plan {
			if !growing.MatchString(line) {
				continue
			}
			scans++
			if !strings.Contains(line, "Index") || i+1 == len(plan) || !strings.Contains(plan[i+1], "Index Cond:") {
				t.Errorf("%s: %s\n%s", name, line, strings.Join(plan, "\n"))
			}
		}
		if scans < 5 {
			t.Errorf("%s: %d scans of tables that grow, want five or more:\n%s", name, scans, strings.Join(plan, "\n"))
		}
	}
}

var growing = regexp.MustCompile(`(Scan|scan) .*\bon (runs|effects|business_claims|effect_events|attempts)\b`)
