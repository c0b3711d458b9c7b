package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"quittance/ledger"
	"quittance/ledger/embedded"
	"quittance/web"
)

// stopLimit is how long our own database may take to stop, after requests and loops
// have ended: a checkpoint's time.
const stopLimit = 60 * time.Second

type serveCmd struct{ config }

// Run serves until ctx ends. It stops in the reverse order of what depends on what:
// requests, loops, connections, database.
func (c *serveCmd) Run(ctx context.Context, env environment, log *slog.Logger) (err error) {
	began := time.Now()
	c.environment = env
	if err := c.check(); err != nil {
		return err
	}
	log.Info("quittance", "version", version(), "config", &c.config)

	// The quick refusals come before the database.
	rules, err := loadPolicy(c.Policy)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("couldn't listen on %s: %w", c.Listen, err)
	}
	defer l.Close()

	db, stopDatabase, err := c.startDatabase(ctx, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopDatabase()) }()
	if err := db.CheckSafety(ctx); err != nil {
		return err
	}

	anchor, err := c.anchor(c.environment, c.dataFlag)
	if err != nil {
		return err
	}
	app, err := newApplication(ctx, c.config, rules, db, anchor, log)
	if err != nil {
		return err
	}
	stopLoops := runLoops(ctx, app.loops)
	defer stopLoops()
	log.Info("serving", "url", "http://"+l.Addr().String(), "after", time.Since(began).Round(time.Millisecond))
	if err := web.Serve(ctx, log, l, app.handler); err != nil {
		return err
	}
	log.Info("stopped serving")
	return nil
}

// startDatabase opens the database that the configuration names. A database of
// somebody else's is only looked at; our own is started, migrated and kept running.
func (c *serveCmd) startDatabase(ctx context.Context, log *slog.Logger) (*ledger.DB, func() error, error) {
	if c.DatabaseURL != "" {
		return openDatabase(ctx, c.environment, c.dataFlag)
	}
	in, err := embedded.Start(ctx, embedded.Options{Dir: c.Data})
	if err != nil {
		return nil, nil, err
	}
	stop := func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
		defer cancel()
		return in.Stop(ctx)
	}
	if c.Place == "" {
		c.Place = in.Place()
	}
	log.Info("embedded database", "data", in.Dir(), "environment", c.Place)
	db, err := openEmbedded(ctx, in)
	if err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	stopWatching := runLoops(ctx, []func(context.Context){
		func(ctx context.Context) { in.Supervise(ctx, log) },
	})
	return db, func() error {
		stopWatching()
		return errors.Join(db.Close(), stop())
	}, nil
}

// runLoops starts each loop; the returned function ends them and waits. They outlive
// ctx on purpose: requests that finish during a stop still need them.
func runLoops(ctx context.Context, loops []func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	for _, loop := range loops {
		wg.Go(func() { loop(ctx) })
	}
	return func() {
		cancel()
		wg.Wait()
	}
}
