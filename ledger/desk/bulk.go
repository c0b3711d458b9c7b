package desk

import (
	"context"
	"fmt"
	"time"

	"quittance/ledger"

	"github.com/lib/pq"
)

// Bulk is a frozen set of effects and the one verdict a person gives on all of them.
type Bulk struct {
	ID         string      `db:"id"`
	Person     int64       `db:"person_id"`
	PersonName string      `db:"person_name"`
	Name       string      `db:"name"`
	Filter     string      `db:"filter"`
	MadeAt     time.Time   `db:"made_at"`
	Verdict    string      `db:"verdict"`
	Note       string      `db:"note"`
	OrderedAt  ledger.Time `db:"ordered_at"`
	UndoneAt   ledger.Time `db:"undone_at"`
	UndoneBy   int64       `db:"undone_by"`
	UndoNote   string      `db:"undo_note"`
	FinishedAt ledger.Time `db:"finished_at"`
}

// BulkRow is one effect of the set.
type BulkRow struct {
	Effect   string      `db:"effect_id"`
	Place    int         `db:"place"`
	Version  int64       `db:"version"`
	Excluded string      `db:"excluded"`
	Outcome  string      `db:"outcome"`
	Detail   string      `db:"detail"`
	DoneAt   ledger.Time `db:"done_at"`
	Undone   string      `db:"undone"`

	Summary   string `db:"summary"`
	RunID     string `db:"run_id"`
	State     string `db:"state"`
	Amount    string `db:"amount"`
	Currency  string `db:"currency"`
	Decimals  int    `db:"decimals"`
	Proposed  bool   `db:"proposed"`
	Contra    bool   `db:"contradicted"`
	VersionIs int64  `db:"version_is"`
	Tool      string `db:"tool"`
	Problem   string `db:"amount_problem"`
}

// Frozen is one effect as the page showed it, or as a filter found it.
type Frozen struct {
	Effect  string `db:"effect"`
	Version int64  `db:"version"`
}

// AddBulk stores a set; the rows come in order, with why they are left out.
func AddBulk(ctx context.Context, tx *ledger.Tx, b Bulk, rows []BulkRow) error {
	if _, err := tx.Exec(ctx, `INSERT INTO bulks (id, person_id, name, filter) VALUES ($1, $2, $3, $4)`, b.ID, b.Person, b.Name, b.Filter); err != nil {
		return fmt.Errorf("couldn't store a set: %w", err)
	}
	ids, places, versions, excluded := make([]string, len(rows)), make([]int64, len(rows)), make([]int64, len(rows)), make([]string, len(rows))
	for i, x := range rows {
		ids[i], places[i], versions[i], excluded[i] = x.Effect, int64(i), x.Version, x.Excluded
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO bulk_rows (bulk_id, effect_id, place, version, excluded)
		SELECT $1::uuid, x.id, x.place, x.version, NULLIF(x.excluded, '')
		FROM unnest($2::uuid[], $3::bigint[], $4::bigint[], $5::text[]) AS x(id, place, version, excluded)`,
		b.ID, pq.Array(ids), pq.Array(places), pq.Array(versions), pq.Array(excluded))
	if err != nil {
		return fmt.Errorf("couldn't store a set: %w", err)
	}
	return nil
}

const standingColumns = `e.summary, r.run_id, e.state, COALESCE(e.amount::text, '') AS amount, COALESCE(e.currency, '') AS currency,
	COALESCE(e.decimals, 0) AS decimals, e.proposal IS NOT NULL AS proposed, e.contradictions > 0 AS contradicted,
	e.version AS version_is, e.tool, COALESCE(e.amount_problem, '') AS amount_problem`

// Standing reads how effects stand now, for freezing them into a set; those that do
// not exist are absent.
func Standing(ctx context.Context, r ledger.Reader, ids []string) (map[string]BulkRow, error) {
	var rows []BulkRow
	err := r.Select(ctx, &rows, `
		SELECT e.id AS effect_id, `+standingColumns+`
		FROM unnest($1::uuid[]) AS w(id) JOIN effects e ON e.id = w.id JOIN runs r ON r.id = e.run_id`, pq.Array(ids))
	if err != nil {
		return nil, fmt.Errorf("couldn't read the effects of a set: %w", err)
	}
	m := make(map[string]BulkRow, len(rows))
	for _, x := range rows {
		m[x.Effect] = x
	}
	return m, nil
}

const bulkColumns = `b.id, b.person_id, p.name AS person_name, b.name, b.filter, b.made_at, COALESCE(b.verdict, '') AS verdict,
	COALESCE(b.note, '') AS note, b.ordered_at, b.undone_at, COALESCE(b.undone_by, 0) AS undone_by, COALESCE(b.undo_note, '') AS undo_note, b.finished_at`

// BulkByID reads a set; [ledger.ErrNotFound].
func BulkByID(ctx context.Context, r ledger.Reader, id string) (b Bulk, err error) {
	err = r.Get(ctx, &b, `SELECT `+bulkColumns+` FROM bulks b JOIN people p ON p.id = b.person_id WHERE b.id = $1::uuid`, id)
	return b, err
}

// BulkRows reads rows of a set in order: those that are left out, or those that are
// not, behind a place, at most n.
func BulkRows(ctx context.Context, r ledger.Reader, id string, excluded bool, after, n int) ([]BulkRow, error) {
	var rows []BulkRow
	err := r.Select(ctx, &rows, `
		SELECT w.effect_id, w.place, w.version, COALESCE(w.excluded, '') AS excluded, COALESCE(w.outcome, '') AS outcome,
			COALESCE(w.detail, '') AS detail, w.done_at, COALESCE(w.undone, '') AS undone, `+standingColumns+`
		FROM bulk_rows w JOIN effects e ON e.id = w.effect_id JOIN runs r ON r.id = e.run_id
		WHERE w.bulk_id = $1::uuid AND (w.excluded IS NOT NULL) = $2 AND w.place > $3 ORDER BY w.place LIMIT $4`, id, excluded, after, n)
	if err != nil {
		return nil, fmt.Errorf("couldn't read a set: %w", err)
	}
	return rows, nil
}

// BulkSum is what a set holds in one currency ("" for none).
type BulkSum struct {
	Currency string `db:"currency"`
	Decimals int    `db:"decimals"`
	Effects  int    `db:"effects"`
	Amount   string `db:"amount"`
}

// BulkSums sums what is not left out.
func BulkSums(ctx context.Context, r ledger.Reader, id string) ([]BulkSum, error) {
	var rows []BulkSum
	err := r.Select(ctx, &rows, `
		SELECT COALESCE(e.currency, '') AS currency, COALESCE(e.decimals, 0) AS decimals, count(*) AS effects, COALESCE(sum(e.amount), 0)::text AS amount
		FROM bulk_rows w JOIN effects e ON e.id = w.effect_id WHERE w.bulk_id = $1::uuid AND w.excluded IS NULL
		GROUP BY 1, 2 ORDER BY 3 DESC, 1`, id)
	if err != nil {
		return nil, fmt.Errorf("couldn't sum a set: %w", err)
	}
	return rows, nil
}

// BulkCount counts rows by what became of them; "" are still to do.
type BulkCount struct {
	Excluded string `db:"excluded"`
	Outcome  string `db:"outcome"`
	Rows     int    `db:"rows"`
}

// BulkCounts counts a set.
func BulkCounts(ctx context.Context, r ledger.Reader, id string) ([]BulkCount, error) {
	var rows []BulkCount
	err := r.Select(ctx, &rows, `
		SELECT COALESCE(excluded, '') AS excluded, COALESCE(outcome, '') AS outcome, count(*) AS rows
		FROM bulk_rows WHERE bulk_id = $1::uuid GROUP BY 1, 2 ORDER BY 3 DESC`, id)
	if err != nil {
		return nil, fmt.Errorf("couldn't count a set: %w", err)
	}
	return rows, nil
}

// OrderBulk gives the verdict, once: false when it was given before.
func OrderBulk(ctx context.Context, tx *ledger.Tx, id, name, verdict, note string) (bool, error) {
	n, err := tx.Exec(ctx, `
		UPDATE bulks SET name = $2, verdict = $3, note = $4, ordered_at = clock_timestamp() WHERE id = $1::uuid AND ordered_at IS NULL`,
		id, name, verdict, note)
	if err != nil {
		return false, fmt.Errorf("couldn't order a set: %w", err)
	}
	return n == 1, nil
}

// UndoBulk asks for the whole set to be taken back, once.
func UndoBulk(ctx context.Context, tx *ledger.Tx, id string, person int64, note string) (bool, error) {
	n, err := tx.Exec(ctx, `
		UPDATE bulks SET undone_at = clock_timestamp(), undone_by = $3, undo_note = $2, finished_at = NULL
		WHERE id = $1::uuid AND ordered_at IS NOT NULL AND undone_at IS NULL`, id, note, person)
	if err != nil {
		return false, fmt.Errorf("couldn't take a set back: %w", err)
	}
	return n == 1, nil
}

// BulkToDo lists what of a set has no outcome yet, or is to be taken back, in order.
func BulkToDo(ctx context.Context, r ledger.Reader, id string, undo bool, n int) ([]Frozen, error) {
	query := `SELECT effect_id AS effect, version FROM bulk_rows
		WHERE bulk_id = $1::uuid AND excluded IS NULL AND done_at IS NULL ORDER BY place LIMIT $2`
	if undo {
		query = `SELECT effect_id AS effect, version FROM bulk_rows
			WHERE bulk_id = $1::uuid AND outcome IN ('done', 'waits') AND undone IS NULL ORDER BY place LIMIT $2`
	}
	var rows []Frozen
	if err := r.Select(ctx, &rows, query, id, n); err != nil {
		return nil, fmt.Errorf("couldn't read what is left of a set: %w", err)
	}
	return rows, nil
}

// BulkDone notes what became of rows, once for each.
func BulkDone(ctx context.Context, tx *ledger.Tx, id string, rows []BulkRow) error {
	ids, outcomes, details := make([]string, len(rows)), make([]string, len(rows)), make([]string, len(rows))
	for i, x := range rows {
		ids[i], outcomes[i], details[i] = x.Effect, x.Outcome, x.Detail
	}
	_, err := tx.Exec(ctx, `
		UPDATE bulk_rows w SET outcome = x.outcome, detail = NULLIF(x.detail, ''), done_at = clock_timestamp()
		FROM unnest($2::uuid[], $3::text[], $4::text[]) AS x(id, outcome, detail)
		WHERE w.bulk_id = $1::uuid AND w.effect_id = x.id AND w.done_at IS NULL`, id, pq.Array(ids), pq.Array(outcomes), pq.Array(details))
	if err != nil {
		return fmt.Errorf("couldn't note what became of a set: %w", err)
	}
	return nil
}

// BulkUndone notes what became of taking a row back.
func BulkUndone(ctx context.Context, tx *ledger.Tx, id, effect, word string) error {
	_, err := tx.Exec(ctx, `UPDATE bulk_rows SET undone = $3 WHERE bulk_id = $1::uuid AND effect_id = $2::uuid`, id, effect, word)
	return err
}

// FinishBulk marks that nothing of a set is left to do.
func FinishBulk(ctx context.Context, tx *ledger.Tx, id string) error {
	_, err := tx.Exec(ctx, `UPDATE bulks SET finished_at = clock_timestamp() WHERE id = $1::uuid AND finished_at IS NULL`, id)
	return err
}
