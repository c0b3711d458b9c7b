package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"quittance/ledger"
	"quittance/reconcile/policy"
	"quittance/web"
)

// application is what stands between the database and the network.
type application struct {
	handler http.Handler
	// loops run while the server serves; each returns when its context ends.
	loops []func(context.Context)
}

// newApplication wires everything that serve runs.
func newApplication(_ context.Context, c config, _ *policy.Policy, db *ledger.DB, log *slog.Logger) (application, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "alive") })
	mux.HandleFunc("GET /readyz", readiness(db))
	put := func(context.Context, *policy.Policy) error { return nil } // until there is an engine to put it in
	return application{handler: mux, loops: []func(context.Context){
		func(ctx context.Context) { watchPolicy(ctx, c.Policy, put, log) },
	}}, nil
}

// readyLimit is shorter than the time-outs that probes usually have.
const readyLimit = 2 * time.Second

// readiness answers 200 when a request could be served: the database answers and the
// server is not stopping.
func readiness(db *ledger.DB) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-web.Stopping(r.Context()):
			answer(w, http.StatusServiceUnavailable, "stopping")
			return
		default:
		}
		ctx, cancel := context.WithTimeout(r.Context(), readyLimit)
		defer cancel()
		if err := db.Pool().PingContext(ctx); err != nil {
			answer(w, http.StatusServiceUnavailable, "no database")
			return
		}
		answer(w, http.StatusOK, "ready")
	}
}

func answer(w http.ResponseWriter, status int, state string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"state": state})
}
