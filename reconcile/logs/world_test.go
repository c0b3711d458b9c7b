package logs

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/ledger"
	"quittance/ledger/access"
	"quittance/ledger/ledgertest"
	"quittance/reconcile/effects"
	"quittance/reconcile/notify"
	"quittance/reconcile/policy"
)

// world is an engine on a database of its own, one account, one person and a folder.
type world struct {
	*effects.Engine
	t       *testing.T
	db      *ledger.DB
	account int64
	person  effects.Person
	dir     string
}

const rules = `
release: {hold: 0s, not_taken_hold: 0s}
tools:
  send_payment:
    business_key: "{invoice}"
    deadline: 60s
  note:
    deadline: 60s
  read_mail:
    effect: none
`

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldWith(t, rules)
}

func newWorldWith(t *testing.T, rules string) *world {
	t.Helper()
	w := &world{t: t, db: ledgertest.New(t), dir: t.TempDir()}
	p, mistakes := policy.Load("quittance.yaml", []byte(rules))
	if p == nil {
		t.Fatal(mistakes)
	}
	var err error
	if w.Engine, err = effects.New(t.Context(), w.db, p, notify.NewHub(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	err = w.db.InTx(t.Context(), func(ctx context.Context, tx *ledger.Tx) (err error) {
		if w.account, err = access.Account(ctx, tx, "acme"); err != nil {
			return err
		}
		w.person.Name = "Petra"
		w.person.ID, err = access.AddPerson(ctx, tx, "Petra", "", []string{"operator", "admin"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.check)
	return w
}

// check compares what is stored with rules that hold at any time.
func (w *world) check() {
	for rule, query := range map[string]string{
		"each version has one event": `
			SELECT count(*) FROM effects e WHERE version <> (SELECT count(*) FROM effect_events v WHERE v.effect_id = e.id)
				OR version <> (SELECT max(v.version) FROM effect_events v WHERE v.effect_id = e.id)`,
		"the last event says where the effect stands": `
			SELECT count(*) FROM effects e JOIN effect_events v ON v.effect_id = e.id AND v.version = e.version
			WHERE v.data::json->>'state' <> e.state OR COALESCE(v.data::json->>'attempts', '0')::int <> e.attempts`,
		"each attempt is on record": `
			SELECT count(*) FROM effects e WHERE attempts <> (SELECT count(*) FROM attempts a WHERE a.effect_id = e.id)`,
		"nobody holds a run of a file": `
			SELECT count(*) FROM runs r JOIN logfile_runs l ON l.run_id = r.id WHERE r.state = 'running' OR r.lease_hash IS NOT NULL`,
		"a run is paused exactly while something in it waits": `
			SELECT count(*) FROM runs r JOIN logfile_runs l ON l.run_id = r.id WHERE r.closed_at IS NULL AND (r.state = 'paused') <>
				EXISTS (SELECT 1 FROM effects e WHERE e.run_id = r.id AND (e.state IN ('interrupted','held') OR e.state <> 'in_flight' AND NOT e.released OR e.contradictions > 0))`,
		"no decision is carried twice": `
			SELECT count(*) FROM (SELECT 1 FROM logfile_outbox WHERE withdrawn_at IS NULL GROUP BY effect_id, fence, verdict HAVING count(*) > 1) x`,
		"what a line let run is an attempt": `
			SELECT count(*) FROM logfile_outbox o WHERE verdict = 'not_taken' AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.effect_id = o.effect_id AND a.fence = o.fence)`,
	} {
		var n int
		if err := w.db.Get(context.Background(), &n, query); err != nil || n != 0 {
			w.t.Errorf("%s: %d do not, %v", rule, n, err)
		}
	}
}

// file writes a file of the lines, each with an end.
func (w *world) file(name string, lines ...string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	w.put(path, strings.Join(lines, "\n")+"\n")
	return path
}

func (w *world) put(path, text string) {
	w.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) add(path, text string) {
	w.t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) read(path string) string {
	w.t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

func (w *world) reader(path string) *Reader {
	w.t.Helper()
	r, err := Open(w.t.Context(), w.Engine, w.db, slog.New(slog.DiscardHandler), Options{Account: w.account, Path: path, Agent: "ap-bot", Run: "run-1"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = r.Close() })
	return r
}

func (w *world) tryImport(path string) (effects.LogReport, error) {
	w.t.Helper()
	r := w.reader(path)
	report, err := r.Import(w.t.Context())
	_ = r.Close()
	return report, err
}

func (w *world) imports(path string) effects.LogReport {
	w.t.Helper()
	report, err := w.tryImport(path)
	if err != nil {
		w.t.Fatal(err)
	}
	return report
}

// round is one look of a follower.
func (w *world) round(r *Reader) (report effects.LogReport) {
	w.t.Helper()
	if err := r.Round(w.t.Context(), func(p effects.LogReport) { report.Add(p) }); err != nil {
		w.t.Fatal(err)
	}
	return report
}

// row is an effect as the tests look at it.
type row struct {
	ID        string `db:"id"`
	Key       string `db:"client_key"`
	Tool      string `db:"tool"`
	State     string `db:"state"`
	Why       string `db:"why"`
	By        string `db:"decided_by"`
	Attempts  int    `db:"attempts"`
	Result    string `db:"result"`
	Reference string `db:"reference"`
	Open      int    `db:"contradictions"`
	Version   int64  `db:"version"`
}

func (w *world) rows() (list []row) {
	w.t.Helper()
	err := w.db.Select(w.t.Context(), &list, `
		SELECT e.id, COALESCE(client_key, '') AS client_key, tool, e.state, COALESCE(why, '') AS why, COALESCE(decided_by, '') AS decided_by, attempts,
			COALESCE(result, '') AS result, COALESCE(reference, '') AS reference, contradictions, version
		FROM effects e JOIN runs r ON r.id = e.run_id ORDER BY r.run_id, client_key, tool, occurrence, e.id`)
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

// of is the one effect of a key.
func (w *world) of(key string) row {
	w.t.Helper()
	var found []row
	for _, x := range w.rows() {
		if x.Key == key {
			found = append(found, x)
		}
	}
	if len(found) != 1 {
		w.t.Fatalf("%d effects of key %s: %+v", len(found), key, w.rows())
	}
	return found[0]
}

func (w *world) want(key, state string) row {
	w.t.Helper()
	x := w.of(key)
	if x.State != state {
		w.t.Fatalf("%s is %s (%s), want %s", key, x.State, x.Why, state)
	}
	return x
}

func (w *world) count(query string, args ...any) (n int) {
	w.t.Helper()
	if err := w.db.Get(w.t.Context(), &n, query, args...); err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *world) exec(query string, args ...any) {
	w.t.Helper()
	err := w.db.InTx(w.t.Context(), func(ctx context.Context, tx *ledger.Tx) error {
		_, err := tx.Exec(ctx, query, args...)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) decide(key string, v effects.Verdict, edit ...func(*effects.Decide)) {
	w.t.Helper()
	x := w.of(key)
	d := effects.Decide{EffectID: x.ID, Version: x.Version, Verdict: v, Note: "looked at the bank portal"}
	for _, f := range edit {
		f(&d)
	}
	got, err := w.Decide(w.t.Context(), w.person, []effects.Decide{d})
	if err != nil || got[0].Refusal != nil {
		w.t.Fatalf("%s of %s: %v %v", v, key, err, got)
	}
}

// passMoment lets every deadline and moment pass, as time does.
func (w *world) passMoment() {
	w.t.Helper()
	w.exec(`UPDATE effects SET deadline = clock_timestamp() - interval '1 millisecond', moment = clock_timestamp() - interval '1 millisecond' WHERE deadline IS NOT NULL`)
}

// loops runs the time rules for a moment.
func (w *world) loops(until func() bool) {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() { w.Loops(ctx); close(done) }()
	for deadline := time.Now().Add(30 * time.Second); !until(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			stop()
			w.t.Fatal("the loops did not get there")
		}
	}
	stop()
	<-done
}

func intent(key string) string {
	return fmt.Sprintf(`{"type":"intent","key":%q,"tool":"send_payment","arguments":{"vendor":"ACME","invoice":"INV-%s"},"at":"2026-01-02T03:04:05Z"}`, key, key)
}

func completed(key string) string {
	return fmt.Sprintf(`{"type":"completed","key":%q,"result":{"payment_id":"po_%s"},"reference":"po_%s","at":"2026-01-02T03:04:06Z"}`, key, key, key)
}

// records are n lines: pairs of an intent and its outcome.
func records(from, to int) (list []string) {
	for i := from; i <= to; i++ {
		key := fmt.Sprintf("K-%d", (i+1)/2)
		if i%2 == 1 {
			list = append(list, intent(key))
		} else {
			list = append(list, completed(key))
		}
	}
	return list
}

func shuffled(rnd *rand.Rand, lines []string) []string {
	list := slices.Clone(lines)
	rnd.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}
