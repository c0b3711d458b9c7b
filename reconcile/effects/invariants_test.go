package effects_test

import (
	"encoding/json"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	store "quittance/ledger/effects"
	"quittance/reconcile/effects"
	"quittance/reconcile/seal"
)

// check compares everything that is stored with the rules that hold at any time:
// the log with the table, claims with the effects that need them, runs with theirs.
func (w *world) check() {
	w.t.Helper()
	w.checkLog()
	w.checkClaims()
	w.checkRuns()
	w.checkAttempts()
	w.checkSeal()
	if w.t.Failed() {
		w.t.FailNow()
	}
}

// standing are the columns that an event carries, as JSON.
const standing = `json_build_object('state', state, 'why', why, 'version', version, 'attempts', attempts, 'fence', fence, 'deadline', deadline,
	'moment', moment, 'gap', gap, 'decided_by', decided_by, 'decided_from', decided_from, 'decision', decision, 'proposal', proposal,
	'early', early, 'release_at', release_at, 'released', released, 'used_at', used_at, 'reference', reference, 'same_as', same_as,
	'result_size', NULLIF(result_size, 0), 'result_digest', result_digest, 'contradictions', contradictions,
	'waiting_since', waiting_since, 'changed_at', changed_at)::text`

// checkLog folds the events of each effect by version: they are contiguous, their
// digests recompute, and the last one is the row.
func (w *world) checkLog() {
	w.t.Helper()
	var rows []struct {
		ID   string `db:"id"`
		Data string `db:"data"`
	}
	if err := w.db.Select(w.t.Context(), &rows, `SELECT id, `+standing+` AS data FROM effects`); err != nil {
		w.t.Fatal(err)
	}
	for _, r := range rows {
		log, err := store.EventsOfEffect(w.t.Context(), w.db, r.ID)
		if err != nil {
			w.t.Fatal(err)
		}
		for i, v := range log {
			if v.Version != int64(i+1) {
				w.t.Errorf("%s: event %d has version %d", r.ID, i, v.Version)
			}
			if string(v.Sum()) != string(v.Digest) {
				w.t.Errorf("%s: the digest of version %d does not recompute", r.ID, v.Version)
			}
		}
		if len(log) == 0 {
			w.t.Errorf("%s has no events", r.ID)
			continue
		}
		row, last := values(w.t, r.Data), values(w.t, log[len(log)-1].Data)
		delete(last, "cause")
		delete(last, "arguments_digest")
		if w.tampered {
			for _, k := range []string{"deadline", "moment", "release_at", "waiting_since"} {
				delete(row, k)
				delete(last, k)
			}
		}
		for k := range row {
			if row[k] != last[k] {
				w.t.Errorf("%s: %s is %q in the row and %q in the log", r.ID, k, row[k], last[k])
			}
		}
		if len(row) != len(last) {
			w.t.Errorf("%s: %d values in the row, %d in the log: %s", r.ID, len(row), len(last), log[len(log)-1].Data)
		}
	}
}

// movedTimes are findings about nothing but the times that a tampering test moves.
var movedTimes = regexp.MustCompile(`^effect \S+: ((^|; )?(deadline|moment|release_at|waiting_since) is "[^"]*" in the row and "[^"]*" in the log(; )?)+$`)

// checkSeal seals what is there and has everything checked as `quittance verify` does.
func (w *world) checkSeal() {
	w.t.Helper()
	anchor := seal.NewAnchor("")
	if _, _, err := seal.New(w.db, anchor, func() {}, slog.New(slog.DiscardHandler)).Seal(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	report, err := seal.Verify(w.t.Context(), w.db, false, seal.Checks(w.db, anchor)...)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range report.Checks {
		for _, f := range c.Findings {
			if !w.tampered || !movedTimes.MatchString(f.What) {
				w.t.Errorf("verify, %s: %s", c.Name, f.What)
			}
		}
	}
}

// values reads a flat JSON object; zero values are left out and times made comparable.
func values(t testing.TB, text string) map[string]string {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for k, v := range m {
		s := strings.Trim(string(v), `"`)
		if s == "null" || s == "false" || s == "0" {
			continue
		}
		switch k {
		case "deadline", "moment", "release_at", "used_at", "waiting_since", "changed_at":
			s = utc(t, s)
		}
		out[k] = s
	}
	return out
}

// utc is a time in microseconds, however it was written.
func utc(t testing.TB, s string) string {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return at.UTC().Format("2006-01-02T15:04:05.000000Z")
}

func facts(state, why, by, from string, released, used, same bool, attempts int, gap bool) effects.Facts {
	return effects.Facts{State: effects.State(state), Why: effects.Why(why), By: effects.By(by), From: effects.State(from),
		Released: released, Used: used, Attempts: attempts, Gap: gap, SameAs: same}
}

// checkClaims: whoever has a claim needs it, no live effect's claim is free, and no
// two effects of one business key are on their way unless a person allowed it.
func (w *world) checkClaims() {
	w.t.Helper()
	var rows []struct {
		ID       string `db:"id"`
		Claim    string `db:"claim"`
		Owner    string `db:"owner"`
		Call     bool   `db:"call_claim"`
		State    string `db:"state"`
		Why      string `db:"why"`
		By       string `db:"by"`
		From     string `db:"from"`
		Released bool   `db:"released"`
		Used     bool   `db:"used"`
		Same     bool   `db:"same"`
		Attempts int    `db:"attempts"`
		Gap      bool   `db:"gap"`
		Allowed  bool   `db:"allowed"`
	}
	err := w.db.Select(w.t.Context(), &rows, `
		SELECT e.id, encode(e.claim, 'hex') AS claim, COALESCE(c.effect_id::text, '') AS owner, e.call_claim, e.state, COALESCE(e.why, '') AS why,
			COALESCE(e.decided_by, '') AS by, COALESCE(e.decided_from, '') AS "from", e.released, e.used_at IS NOT NULL AS used,
			e.same_as IS NOT NULL AS same, e.attempts, e.gap,
			EXISTS (SELECT 1 FROM decisions d WHERE d.effect_id = e.id AND d.verdict = 'allow' AND d.act = 'decide') AS allowed
		FROM effects e LEFT JOIN business_claims c ON c.digest = e.claim`)
	if err != nil {
		w.t.Fatal(err)
	}
	flying := map[string]string{}
	for _, r := range rows {
		f := facts(r.State, r.Why, r.By, r.From, r.Released, r.Used, r.Same, r.Attempts, r.Gap)
		if !effects.Valid(f) {
			w.t.Errorf("%s has a shape that no rule allows: %+v", r.ID, f)
		}
		if needs := effects.HoldsClaim(f, r.Call); needs && r.Owner == "" {
			w.t.Errorf("the claim is free under %s, which is %s", r.ID, r.State)
		} else if !needs && r.Owner == r.ID {
			w.t.Errorf("%s is %s and still holds its claim", r.ID, r.State)
		}
		// Repeats in one run are held too: the tools of these tests do not allow them.
		if r.State == "in_flight" && !r.Call {
			if other := flying[r.Claim]; other != "" && !r.Allowed && !w.rekeyed {
				w.t.Errorf("%s and %s are both in flight for one business key", r.ID, other)
			}
			flying[r.Claim] = r.ID
		}
	}
}

// checkRuns: a run is paused exactly when an effect of it needs a person.
func (w *world) checkRuns() {
	w.t.Helper()
	var wrong []string
	err := w.db.Select(w.t.Context(), &wrong, `
		SELECT r.run_id || ' is ' || r.state || ' with ' || COALESCE(x.what, 'nothing')
		FROM runs r LEFT JOIN LATERAL (
			SELECT string_agg(e.state || CASE WHEN e.released THEN '' ELSE ' unreleased' END || CASE WHEN e.contradictions > 0 THEN ' contradicted' ELSE '' END, ', ') AS what
			FROM effects e WHERE e.run_id = r.id AND (e.state IN ('interrupted','held') OR e.contradictions > 0
				OR (e.state IN ('cleared','taken','cancelled') AND NOT e.released))) AS x ON true
		WHERE r.state NOT IN ('finished','failed','cancelled') AND (r.state = 'paused') <> (x.what IS NOT NULL)
		UNION ALL
		SELECT r.run_id || ' is closed with an effect that is ' || e.state FROM runs r JOIN effects e ON e.run_id = r.id
		WHERE r.closed_at IS NOT NULL AND e.state IN ('in_flight','interrupted','held','cleared')
		UNION ALL
		SELECT r.run_id || ' has nobody''s effect in flight' FROM runs r JOIN effects e ON e.run_id = r.id
		WHERE e.state = 'in_flight' AND r.lease_hash IS NULL`)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, x := range wrong {
		w.t.Error(x)
	}
}

// checkAttempts: they are numbered without a hole, fences only rise, the row knows the
// last, and a reference proves one effect.
func (w *world) checkAttempts() {
	w.t.Helper()
	for what, query := range map[string]string{
		"effects disagree with their attempts": `
			SELECT count(*) FROM effects e WHERE attempts <> (SELECT count(*) FROM attempts a WHERE a.effect_id = e.id)
			OR attempts > 0 AND NOT gap AND fence <> (SELECT max(fence) FROM attempts a WHERE a.effect_id = e.id)`,
		"fences fall": `SELECT count(*) FROM attempts a JOIN attempts b USING (effect_id) WHERE a.number < b.number AND a.fence >= b.fence`,
		"events go backwards": `
			SELECT count(*) FROM effect_events a JOIN effect_events b ON a.effect_id = b.effect_id AND b.version = a.version + 1 WHERE b.at < a.at OR b.id < a.id`,
		"leases overlap": `
			SELECT count(*) FROM leases a JOIN leases b ON a.run_id = b.run_id AND a.epoch < b.epoch WHERE a.ended_at IS NULL OR b.taken_at < a.ended_at`,
		"open contradictions are miscounted": `
			SELECT count(*) FROM effects e WHERE contradictions <> (SELECT count(*) FROM contradictions k WHERE k.effect_id = e.id AND k.acknowledged_at IS NULL)`,
	} {
		if n := w.count(query); n != 0 {
			w.t.Errorf("%s: %d", what, n)
		}
	}
}
