package effects_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"quittance/reconcile/effects"
	"quittance/reconcile/policy"
)

// BC-148: the secret of a look-up is sent, and is nowhere else: not in a row, not in the
// log, also where the downstream throws it back in every form.
func TestBC148_ALookUpsSecretIsNowhere(t *testing.T) {
	const secret = "bk-93f1-secret/+value"
	t.Setenv("BANK_TOKEN", secret)
	bank := newDownstream(t)
	w := newWorld(t, fastRelease)
	source := strings.Replace(bank.policy(), "      http:\n", "      http:\n        headers: {Authorization: \"Bearer ${env:BANK_TOKEN}\"}\n", 1)
	p, mistakes := policy.Load("quittance.yaml", []byte(source))
	if p == nil {
		t.Fatal(mistakes)
	}
	var log bytes.Buffer
	e, err := effects.New(t.Context(), w.db, p, w.hub, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		t.Fatal(err)
	}
	w.Engine = e
	sent := 0
	n := 0
	bank.answer = func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Bearer "+secret {
			sent++
		}
		if r.URL.Query().Get("reference") == "CANARY" {
			return false
		}
		n++
		switch n % 5 {
		case 0:
			rw.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprintf(rw, "denied for Authorization: Bearer %s", secret)
		case 1:
			_, _ = fmt.Fprintf(rw, `{"data":[{"id":%q,"reference":%q,"amount":"4200.00","currency":"USD","status":"processing %s"}]}`, secret, acme("INV-1"), secret)
		case 2:
			_, _ = fmt.Fprintf(rw, `{"data":[],"echo":{"authorization":"Bearer %s","deep":["%s"]}}`, secret, strings.ReplaceAll(secret, "/", `\/`))
		case 3:
			_, _ = fmt.Fprintf(rw, `{"data":[],"echo":"\u0062k-\u00393f1-secret/+value"}`)
		default:
			rw.Header().Set("Location", "http://127.0.0.1/?token="+secret)
			rw.WriteHeader(http.StatusFound)
		}
		return true
	}
	b := w.lost("run", pay("INV-1", "4200.00"))
	w.look()
	for range 5 {
		w.lookAgain(b.EffectID, 0)
	}
	if sent == 0 || len(w.looks(b.EffectID).Looks) != 6 {
		t.Fatalf("sent %d times, %d looks", sent, len(w.looks(b.EffectID).Looks))
	}
	var tables []string
	if err := w.db.Select(t.Context(), &tables, `SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`); err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		for _, form := range []string{secret, strings.ReplaceAll(secret, "/", `\/`), "93f1-secret", `u00393f1`} {
			if hits := w.count(`SELECT count(*) FROM `+table+` x WHERE position($1 in x::text) > 0`, form); hits > 0 {
				var row string
				_ = w.db.Get(t.Context(), &row, `SELECT x::text FROM `+table+` x WHERE position($1 in x::text) > 0 LIMIT 1`, form)
				t.Errorf("%d rows of %s hold the secret as %q: %s", hits, table, form, row)
			}
		}
	}
	if strings.Contains(log.String(), "93f1") {
		t.Errorf("the log holds the secret: %s", log.String())
	}
}
