package effects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"quittance/ledger"
	"quittance/ledger/ledgertest"

	store "quittance/ledger/effects"
)

// errUndo makes a transaction give back what it did.
var errUndo = errors.New("undo")

// withRun calls f in a transaction, which is then undone, on a database with one run.
func withRun(t *testing.T, f func(ctx context.Context, tx *ledger.Tx)) {
	t.Helper()
	db := ledgertest.New(t)
	err := db.InTx(t.Context(), func(ctx context.Context, tx *ledger.Tx) error {
		mustExec(t, ctx, tx, `INSERT INTO accounts (name) VALUES ('acme')`)
		mustExec(t, ctx, tx, `INSERT INTO policies (digest, source) VALUES (sha256('x'), 'x')`)
		mustExec(t, ctx, tx, `
			INSERT INTO runs (account_id, run_id, agent, policy, state, opened_at, changed_at)
			SELECT id, 'run', 'bot', sha256('x'), 'ready', clock_timestamp(), clock_timestamp() FROM accounts`)
		mustExec(t, ctx, tx, insertShape)
		f(ctx, tx)
		return errUndo
	})
	if !errors.Is(err, errUndo) {
		t.Fatal(err)
	}
}

func mustExec(t *testing.T, ctx context.Context, tx *ledger.Tx, query string, args ...any) {
	t.Helper()
	if _, err := tx.Exec(ctx, query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// insertShape makes put, which stores an effect of the given facts. The columns that
// no fact speaks of are as the engine writes them: a release time for what is closed,
// a deadline for what was attempted or may have been.
const insertShape = `
	CREATE FUNCTION pg_temp.put(state text, why text, decided_by text, decided_from text, released boolean, used boolean,
		attempts integer, gap boolean, same boolean) RETURNS uuid LANGUAGE sql AS $$
	INSERT INTO effects (id, account_id, run_id, key, tool, occurrence, arguments, call_digest, claim, call_claim, summary,
		opened_at, changed_at, fence, state, why, decided_by, decided_from, released, used_at, attempts, gap, same_as, release_at, deadline)
	SELECT gen_random_uuid(), r.account_id, r.id, sha256(uuid_send(gen_random_uuid())), 'pay', 1, '{}', sha256(''), sha256(''), true, '',
		now(), now(), $7, $1, NULLIF($2, ''), NULLIF($3, ''), NULLIF($4, ''), $5, CASE WHEN $6 THEN now() END, $7, $8,
		CASE WHEN $9 THEN gen_random_uuid() END,
		CASE WHEN $1 NOT IN ('in_flight', 'interrupted', 'held') THEN now() END, CASE WHEN $7 > 0 OR $8 THEN now() END
	FROM runs r RETURNING id $$`

// acceptedShapes lists every combination that no CHECK of effects refuses: the
// expressions as PostgreSQL keeps them, over a row whose other columns are as put
// writes them. As in a CHECK, null is no refusal.
const acceptedShapes = `
	SELECT concat_ws('/', state, COALESCE(why, ''), COALESCE(decided_by, ''), COALESCE(decided_from, ''), released, used_at IS NOT NULL,
		attempts, gap, same_as IS NOT NULL)
	FROM (SELECT *, ROW(%s)::effects AS whole FROM (
		SELECT %s, s AS state, NULLIF(w, '') AS why, NULLIF(b, '') AS decided_by, NULLIF(f, '') AS decided_from, r AS released,
			CASE WHEN u THEN now() END AS used_at, n AS attempts, g AS gap, CASE WHEN m THEN e.id END AS same_as,
			CASE WHEN s NOT IN ('in_flight', 'interrupted', 'held') THEN now() END AS release_at,
			CASE WHEN n > 0 OR g THEN now() END AS deadline
		FROM effects e, unnest($1::text[]) s, unnest($2::text[]) w, unnest($3::text[]) b, unnest($4::text[]) f,
			unnest('{f,t}'::boolean[]) r, unnest('{f,t}'::boolean[]) u, generate_series(0, 2) n,
			unnest('{f,t}'::boolean[]) g, unnest('{f,t}'::boolean[]) m) AS shapes) AS rows
	WHERE %s`

// varied are the columns that acceptedShapes makes itself.
const varied = `'{state,why,decided_by,decided_from,released,used_at,attempts,gap,same_as,release_at,deadline}'`

func shapeText(f Facts) string {
	letter := func(b bool) string { return map[bool]string{false: "f", true: "t"}[b] }
	return strings.Join([]string{string(f.State), string(f.Why), string(f.By), string(f.From), letter(f.Released), letter(f.Used),
		fmt.Sprint(f.Attempts), letter(f.Gap), letter(f.SameAs)}, "/")
}

func put(ctx context.Context, tx *ledger.Tx, f Facts) error {
	var id string
	return tx.Get(ctx, &id, putShape, shapeArgs(f)...)
}

const putShape = `SELECT pg_temp.put($1, $2, $3, $4, $5, $6, $7, $8, $9)`

func shapeArgs(f Facts) []any {
	return []any{f.State, f.Why, f.By, f.From, f.Released, f.Used, f.Attempts, f.Gap, f.SameAs}
}

func get(t *testing.T, ctx context.Context, tx *ledger.Tx, dest any, query string) {
	t.Helper()
	if err := tx.Get(ctx, dest, query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// list makes a PostgreSQL array of plain words.
func list[T ~string](words ...T) string {
	text := make([]string, len(words))
	for i, w := range words {
		text[i] = `"` + string(w) + `"`
	}
	return "{" + strings.Join(text, ",") + "}"
}

// PostgreSQL accepts a row exactly where Valid does, over every combination of the
// columns that facts are read from, and of words that no column knows.
func TestSchemaAcceptsWhatIsValid(t *testing.T) {
	t.Parallel()
	want := map[string]bool{}
	var valid []Facts
	everyShape(func(f Facts) {
		if Valid(f) {
			want[shapeText(f)] = true
			valid = append(valid, f)
		}
	})
	withRun(t, func(ctx context.Context, tx *ledger.Tx) {
		var checks, columns, others string
		get(t, ctx, tx, &checks, `
			SELECT string_agg('(' || replace(pg_get_expr(conbin, conrelid), 'effects.*', 'whole') || ') IS NOT FALSE', ' AND ') FROM pg_constraint
			WHERE conrelid = 'effects'::regclass AND contype = 'c' AND convalidated`)
		get(t, ctx, tx, &columns, `
			SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
			WHERE attrelid = 'effects'::regclass AND attnum > 0 AND NOT attisdropped`)
		get(t, ctx, tx, &others, `
			SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute
			WHERE attrelid = 'effects'::regclass AND attnum > 0 AND NOT attisdropped AND attname <> ALL (`+varied+`)`)
		if err := put(ctx, tx, valid[0]); err != nil {
			t.Fatal(err)
		}
		var got []string
		err := tx.Select(ctx, &got, fmt.Sprintf(acceptedShapes, columns, others, checks), list(append(store.States, "unheard_of")...),
			list(append(everyWhy, "unheard_of")...), list(append(everyBy, "unheard_of")...), list(append(store.States, None, "unheard_of")...))
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range got {
			if !want[g] {
				t.Errorf("PostgreSQL accepts %s, Valid does not", g)
			}
			delete(want, g)
		}
		for w := range want {
			t.Errorf("Valid accepts %s, PostgreSQL does not", w)
		}
		// That a table refuses what its CHECKs refuse is PostgreSQL's own promise; here it
		// keeps it for what is valid, and for what is one column away from that.
		for i, f := range valid {
			if err := put(ctx, tx, f); err != nil {
				t.Fatalf("couldn't insert %s: %v", shapeText(f), err)
			}
			for _, near := range nextTo(f)[i%5:] {
				if Valid(near) {
					continue
				}
				if err := change(ctx, tx, near, "error = NULL"); ledger.Constraint(err) != "effects_shape" {
					t.Errorf("inserting %s: %v", shapeText(near), err)
				}
				break
			}
		}
	})
}

// nextTo are the shapes that differ from f in one column.
func nextTo(f Facts) []Facts {
	list := []Facts{f, f, f, f, f, f, f, f}
	list[0].Released = !f.Released
	list[1].Used = !f.Used
	list[2].SameAs = !f.SameAs
	list[3].From = Cleared
	list[4].By = ByVendorKey
	list[5].Why = WhySameKey
	list[6].Attempts = 0
	list[7].By = "unheard_of"
	return list
}

// The columns that no fact is read from: what is open has no outcome, and only taken
// has a reference.
func TestSchemaTiesOutcomesToStates(t *testing.T) {
	t.Parallel()
	withRun(t, func(ctx context.Context, tx *ledger.Tx) {
		for _, f := range allFacts() {
			if f.State == None || f.Attempts != 1 || f.Gap {
				continue
			}
			open := anyOf(f.State, InFlight, Interrupted, Held)
			for column, c := range map[string]struct {
				value string
				may   bool
			}{
				"reference":  {`'po_1'`, f.State == Taken && !f.SameAs},
				"result":     {`'{}'`, !open},
				"error":      {`'{}'`, !open},
				"decision":   {`gen_random_uuid()`, !open},
				"early":      {`true`, !open},
				"proposal":   {`gen_random_uuid()`, open || f.State == Cleared},
				"release_at": {`CASE WHEN release_at IS NULL THEN now() END`, false},
				"deadline":   {`NULL`, false},
			} {
				if err := change(ctx, tx, f, column+" = "+c.value); (err == nil) != c.may {
					t.Errorf("%s: %s = %s: %v", shapeText(f), column, c.value, err)
				} else if err != nil && ledger.Constraint(err) != "effects_shape" {
					t.Errorf("%s: %s = %s: %v", shapeText(f), column, c.value, err)
				}
			}
		}
	})
}

// change puts an effect, sets columns of it and undoes both.
func change(ctx context.Context, tx *ledger.Tx, f Facts, set string) error {
	if _, err := tx.Exec(ctx, `SAVEPOINT before`); err != nil {
		return err
	}
	var id string
	err := tx.Get(ctx, &id, putShape, shapeArgs(f)...)
	if err == nil {
		_, err = tx.Exec(ctx, `UPDATE effects SET version = version + 1, changed_at = now(), `+set+` WHERE id = $1::uuid`, id)
	}
	if _, undo := tx.Exec(ctx, `ROLLBACK TO before`); undo != nil {
		return undo
	}
	return err
}

// The rules of a row that have nothing to do with its state.
func TestSchemaRefusesARowThatIsNotWhole(t *testing.T) {
	t.Parallel()
	withRun(t, func(ctx context.Context, tx *ledger.Tx) {
		if err := put(ctx, tx, Facts{State: Taken, By: ByAgent, Attempts: 1, Released: true, Used: true}); err != nil {
			t.Fatal(err)
		}
		valid := func(patch string) (ok bool) {
			get(t, ctx, tx, &ok, `SELECT effect_valid(jsonb_populate_record(e, '`+patch+`')) FROM effects e`)
			return ok
		}
		for _, patch := range []string{`{}`, `{"amount":1,"currency":"USD","decimals":2}`, `{"client_key":"k","business_key":"b","reference":"r"}`} {
			if !valid(patch) {
				t.Errorf("%s is refused", patch)
			}
		}
		long := strings.Repeat("x", 1025)
		for _, patch := range []string{
			`{"occurrence":0}`, `{"version":0}`, `{"attempts":-1}`, `{"fence":-1}`, `{"contradictions":-1}`,
			`{"key":"\\x00"}`, `{"call_digest":"\\x00"}`, `{"claim":"\\x00"}`, `{"claim_was":"\\x00"}`, `{"result_digest":"\\x00"}`,
			`{"tool":""}`, `{"tool":"` + long[:257] + `"}`, `{"client_key":""}`, `{"client_key":"` + long[:513] + `"}`,
			`{"business_key":""}`, `{"business_key":"` + long + `"}`, `{"reference":""}`, `{"reference":"` + long + `"}`,
			`{"amount":1}`, `{"currency":"USD"}`, `{"amount":1,"currency":"USD"}`, `{"state":"unheard_of"}`,
		} {
			if valid(patch) {
				t.Errorf("%s is accepted", patch[:min(len(patch), 80)])
			}
		}
	})
}

// The names that the schema knows are the names that the program knows.
func TestSchemaNamesAreTheProgramsNames(t *testing.T) {
	t.Parallel()
	seen := map[State]map[Why]bool{}
	for _, f := range allFacts() {
		if seen[f.State] == nil {
			seen[f.State] = map[Why]bool{}
		}
		seen[f.State][f.Why] = true
	}
	for _, s := range store.States {
		for _, w := range everyWhy {
			want := slices.Contains(store.WhysOf[s], w) || len(store.WhysOf[s]) == 0 && w == WhyNone
			if seen[s][w] != want {
				t.Errorf("%s (%s) exists: %v, want %v", s, w, seen[s][w], want)
			}
		}
	}
	for s, whys := range store.WhysOf {
		for _, w := range whys {
			if !slices.Contains(everyWhy, w) {
				t.Errorf("the tests do not know %s (%s)", s, w)
			}
		}
	}
}

// The database lets a state follow another exactly where some row of the table does:
// what no row does, no program can.
func TestSchemaMovesAreTheTablesMoves(t *testing.T) {
	t.Parallel()
	legal := map[[2]State]bool{}
	eachPair(t, true, func(p pair) string {
		if p.f.State != None && p.m.To != p.f.State {
			legal[[2]State{p.f.State, p.m.To}] = true
		}
		return ""
	})
	some := map[State]Facts{} // a row of each state
	for _, f := range allFacts() {
		if f.Attempts == 1 && !f.Gap {
			some[f.State] = f
		}
	}
	withRun(t, func(ctx context.Context, tx *ledger.Tx) {
		for _, from := range store.States {
			for _, to := range store.States {
				err := change(ctx, tx, some[from], setShape(some[to]))
				if want := legal[[2]State{from, to}] || from == to; (err == nil) != want {
					t.Errorf("%s to %s: %v, want it accepted: %v", from, to, err, want)
				} else if err != nil && !strings.Contains(err.Error(), "the state table has no such move") {
					t.Errorf("%s to %s is refused for another reason: %v", from, to, err)
				}
			}
		}
	})
}

// setShape sets the columns of facts.
func setShape(f Facts) string {
	when := func(b bool) string { return map[bool]string{false: "NULL", true: "now()"}[b] }
	return fmt.Sprintf(`state = '%s', why = NULLIF('%s', ''), decided_by = NULLIF('%s', ''), decided_from = NULLIF('%s', ''), released = %v,
		used_at = %s, release_at = %s, same_as = NULL`, f.State, f.Why, f.By, f.From, f.Released, when(f.Used), when(!anyOf(f.State, InFlight, Interrupted, Held)))
}
