package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"quittance/handlers/api"
	"quittance/handlers/desk"
	"quittance/handlers/metrics"
	"quittance/handlers/public"
	"quittance/ledger"
	"quittance/ledger/jobs"
	"quittance/reconcile/access"
	"quittance/reconcile/bulk"
	"quittance/reconcile/effects"
	"quittance/reconcile/notify"
	"quittance/reconcile/payments"
	"quittance/reconcile/payments/evmrail"
	"quittance/reconcile/policy"
	"quittance/reconcile/recoveries"
	"quittance/reconcile/refunds"
	"quittance/reconcile/seal"
	"quittance/reconcile/wake"
	"quittance/web"
)

// application is what stands between the database and the network.
type application struct {
	handler http.Handler
	// loops run while the server serves; each returns when its context ends.
	loops []func(context.Context)
}

// newApplication wires everything that serve runs.
func newApplication(ctx context.Context, c config, rules *policy.Policy, db *ledger.DB, anchor *seal.Anchor, log *slog.Logger) (application, error) {
	hub := notify.NewHub()
	engine, err := effects.New(ctx, db, rules, hub, log)
	if err != nil {
		return application{}, err
	}
	if err := engine.Arrive(ctx, c.Place, c.Restored, anchor.Path() != ""); err != nil {
		return application{}, err
	}
	sealer := seal.New(db, anchor, func() { hub.Changed("") }, log)
	if err := sealer.Arrive(ctx); err != nil {
		return application{}, err
	}
	who := access.New(db)
	if err := who.Bootstrap(ctx, string(c.BootstrapAdminToken), string(c.BootstrapAgentToken)); err != nil {
		return application{}, err
	}

	options := web.Options{Log: log, Proxies: c.Proxies, Known: who.Known, CrossOrigin: desk.AuditCrossOrigin(who, log)}
	if c.PublicURL != "" {
		options.TrustedOrigins = []string{c.PublicURL}
	}
	router, err := web.New(options)
	if err != nil {
		return application{}, err
	}
	router.Use(desk.AuditAPI(who, log))
	waker := wake.New(db, engine.Policy, c.PublicURL, log)
	pay, err := payments.New(ctx, payments.Options{DB: db, Effects: engine, Policy: engine.Policy, PublicURL: c.PublicURL, Log: log,
		Rails: evmrail.Rails(engine.Policy, time.Now)})
	if err != nil {
		return application{}, err
	}
	err = api.Register(router, api.Options{
		Engine: engine, Access: who, Deliveries: waker, Payments: pay, PublicURL: c.PublicURL, Version: version(), Ready: readiness(db, engine.LastLoop, pay.LastLoop),
	})
	if err != nil {
		return application{}, err
	}
	owed := refunds.New(refunds.Options{DB: db, Policy: engine.Policy, Networks: evmrail.Networks(engine.Policy, time.Now), Log: log})
	metrics.Register(router, metrics.Options{DB: db, Access: who, Log: log, Loops: map[string]func() time.Time{
		"effects": engine.LastLoop, "payments": pay.LastLoop, "refunds": owed.LastLoop,
	}})
	public.Register(router, public.Options{Payments: pay, Policy: engine.Policy, Log: log})
	many := bulk.New(db, engine)
	work, err := jobs.New(db, log, many.Funcs())
	if err != nil {
		return application{}, err
	}
	many.Use(work)
	desk.Register(router, desk.Options{
		Engine: engine, Access: who, DB: db, Hub: hub, Bulk: many, Wake: waker, Sealer: sealer, Payments: pay, Refunds: owed, Recoveries: recoveries.New(db),
		Log: log, PublicURL: c.PublicURL, Version: version(),
	})
	return application{handler: router, loops: []func(context.Context){
		engine.Loops, waker.Run, pay.Run, owed.Run, sealer.Run,
		func(ctx context.Context) {
			if err := work.Run(ctx); err != nil && ctx.Err() == nil {
				log.Error("jobs are not done on this server", "error", err)
			}
		},
		func(ctx context.Context) {
			if err := hub.Run(ctx, db); err != nil && ctx.Err() == nil {
				log.Error("hints from other servers are not heard; waiters re-read every few seconds", "error", err)
			}
		},
		func(ctx context.Context) { watchPolicy(ctx, c.Policy, engine.SetPolicy, who.Record, log) },
	}}, nil
}

// Limits of readiness: shorter than the time-outs that probes usually have, and
// several paces of the loops.
const (
	readyLimit = 2 * time.Second
	loopLimit  = 15 * time.Second
)

// readiness says why a request could not be served well now.
func readiness(db *ledger.DB, loops ...func() time.Time) func(context.Context) error {
	started := time.Now()
	return func(ctx context.Context) error {
		select {
		case <-web.Stopping(ctx):
			return errors.New("stopping")
		default:
		}
		ctx, cancel := context.WithTimeout(ctx, readyLimit)
		defer cancel()
		if err := db.Pool().PingContext(ctx); err != nil {
			return errors.New("no database")
		}
		for _, last := range loops { // none of them waits for anybody else's network
			if time.Since(started) > loopLimit && time.Since(last()) > loopLimit {
				return errors.New("the loops have stopped")
			}
		}
		return nil
	}
}
