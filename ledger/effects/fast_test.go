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
func TestStatementsFindRowsByTheirKeys(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	columns := func(f fields) string { return strings.Join(f.types, "[], ") + "[]" }
	for name, s := range map[string]struct {
		query, types string
		scans        int // of tables that grow
	}{
		"begins":   {fastBegins.rows, "bytea, bigint, " + columns(fastBeginFields), 5},
		"begin":    {fastBegins.row, "bytea, bigint, " + strings.Join(fastBeginFields.types, ", "), 5},
		"finishes": {fastFinishes.rows, "text[], " + columns(fastFinishFields), 5},
		"finish":   {fastFinishes.row, "text[], " + strings.Join(fastFinishFields.types, ", "), 5},
		"write":    {writeBatch, columns(insertFields.plus(updateFields).plus(attemptFields).plus(eventFields)), 1},
		"take":     {takeClaims, columns(claimFields), 0},
		"drop":     {dropClaims, "bytea[], uuid[], boolean[]", 3},
	} {
		types := s.types
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
			scan := growing.MatchString(line)
			if scan {
				scans++
			}
			byKey := i+1 < len(plan) && strings.Contains(plan[i+1], "Index Cond:")
			if scan && strings.Contains(line, "Seq Scan") || strings.Contains(line, "Index") && strings.Contains(line, "Scan") && !byKey && !small.MatchString(line) {
				t.Errorf("%s: %s\n%s", name, line, strings.Join(plan, "\n"))
			}
		}
		if scans < s.scans {
			t.Errorf("%s: %d scans of tables that grow, want %d or more:\n%s", name, scans, s.scans, strings.Join(plan, "\n"))
		}
	}
}

var (
	growing = regexp.MustCompile(`Scan .*\bon (runs|effects|business_claims|effect_events|attempts)\b`)
	small   = regexp.MustCompile(`\bon log_gaps\b`)
)
