package effects

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"quittance/ledger"
	"quittance/ledger/system"
	"quittance/reconcile/lookup/limit"
	"quittance/reconcile/notify"
	"quittance/reconcile/policy"
	"quittance/reconcile/redact"
)

// Engine decides everything about runs and effects. Its methods return a *Refusal
// (errors.As) where a caller can act on the answer; any other error is internal and
// changes nothing. Safe for concurrent use, by many servers on one database.
type Engine struct {
	db      *ledger.DB
	secrets system.Secrets
	redact  *redact.Redactor
	hub     *notify.Hub
	log     *slog.Logger

	current  atomic.Pointer[policy.Policy]
	keying   atomic.Pointer[keying]
	mu       sync.Mutex
	policies map[string]*policy.Policy // by digest: those that open runs started with

	committers chan struct{}
	callers    atomic.Int64 // who wait for a shared commit
	lines      lines
	due        chan struct{} // a look-up became due
	arrived    chan struct{} // an event came
	limiter    *limit.Limiter
	arrival    atomic.Pointer[arrival] // nil: it has not arrived
	lastLoop   atomic.Int64            // unix milliseconds of the last finished round of the loops
}

// New makes an engine on a migrated database. hub may be nil: nobody is then woken.
func New(ctx context.Context, db *ledger.DB, p *policy.Policy, hub *notify.Hub, log *slog.Logger) (*Engine, error) {
	e, err := newEngine(ctx, db, hub, log)
	if err != nil {
		return nil, err
	}
	if err := e.SetPolicy(ctx, p); err != nil {
		return nil, err
	}
	return e, nil
}

// Join makes an engine that works beside the servers of a database, under the policy
// that one of them put in force last. It puts none in force itself.
func Join(ctx context.Context, db *ledger.DB, hub *notify.Hub, log *slog.Logger) (*Engine, error) {
	e, err := newEngine(ctx, db, hub, log)
	if err != nil {
		return nil, err
	}
	return e, e.Rejoin(ctx)
}

// Rejoin follows a change of the policy in force.
func (e *Engine) Rejoin(ctx context.Context) error {
	digest, err := system.PolicyInUse(ctx, e.db)
	if err != nil {
		return err
	}
	if p := e.current.Load(); p != nil && bytes.Equal(policyDigest(p), digest) {
		return nil
	}
	p := policy.Default()
	if digest != nil {
		if p, err = e.policyOf(ctx, e.db, digest); err != nil {
			return err
		}
	}
	if err := e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error { // runs are opened under it
		return system.SavePolicy(ctx, tx, policyDigest(p), p.Source)
	}); err != nil {
		return err
	}
	e.current.Store(p)
	return nil
}

func newEngine(ctx context.Context, db *ledger.DB, hub *notify.Hub, log *slog.Logger) (*Engine, error) {
	s, err := system.LoadSecrets(ctx, db)
	if err != nil {
		return nil, err
	}
	if hub == nil {
		hub = notify.NewHub()
	}
	e := &Engine{
		db: db, secrets: s, redact: redact.New(s.Redaction), hub: hub, log: log,
		policies: map[string]*policy.Policy{}, committers: make(chan struct{}, committers), due: make(chan struct{}, 1), arrived: make(chan struct{}, 1), limiter: limit.New(),
	}
	e.keying.Store(&keying{number: -1}) // of no database: read before the first begin
	return e, nil
}

// SetPolicy puts a policy in force for runs opened from now on, and for everything
// but the volatile lists of those that are open. A business_key template that it
// changes comes into force for every server, and stored effects are re-keyed to it.
func (e *Engine) SetPolicy(ctx context.Context, p *policy.Policy) error {
	err := e.db.InTx(ctx, func(ctx context.Context, tx *ledger.Tx) error {
		if err := e.changeTemplates(ctx, tx, p); err != nil {
			return err
		}
		if err := system.SavePolicy(ctx, tx, policyDigest(p), p.Source); err != nil {
			return err
		}
		return system.UsePolicy(ctx, tx, policyDigest(p))
	})
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.policies[string(policyDigest(p))] = p
	e.mu.Unlock()
	if err := e.keyObserved(ctx); err != nil {
		return err
	}
	e.current.Store(p)
	return nil
}

// policyDigest is the policy's digest as it is stored.
func policyDigest(p *policy.Policy) []byte {
	d, _ := hex.DecodeString(p.Digest) // Load made it
	return d
}

// Policy is the one in force.
func (e *Engine) Policy() *policy.Policy { return e.current.Load() }

// policyOf is the policy a run was opened under.
func (e *Engine) policyOf(ctx context.Context, r ledger.Reader, digest []byte) (*policy.Policy, error) {
	e.mu.Lock()
	p := e.policies[string(digest)]
	e.mu.Unlock()
	if p != nil {
		return p, nil
	}
	src, err := system.PolicySource(ctx, r, digest)
	if err != nil {
		return nil, err
	}
	p, mistakes := policy.LoadStored([]byte(src))
	if p == nil {
		return nil, fmt.Errorf("couldn't read the policy a run was opened under: %v", mistakes)
	}
	e.mu.Lock()
	e.policies[string(digest)] = p
	e.mu.Unlock()
	return p, nil
}

// Blind tells whether nobody can ask the tool's downstream what became of an effect.
func (e *Engine) Blind(tool string) bool { return !e.Policy().Tool(tool).HasLookup() }

// LastLoop is when the loops last finished a round on this server.
func (e *Engine) LastLoop() time.Time { return time.UnixMilli(e.lastLoop.Load()) }
