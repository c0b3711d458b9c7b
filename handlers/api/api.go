// Package api answers agents and programs under /v1. A handler parses, asks who is
// calling, calls the engine once and answers; what may happen is decided in
// reconcile/effects alone.
//
// The route table in routes.go is also what /openapi.json is made from.
package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"quittance/ledger/audit"
	"quittance/reconcile/access"
	"quittance/reconcile/effects"
	"quittance/web"
)

// Engine is what the handlers ask of [effects.Engine].
type Engine interface {
	Apply(ctx context.Context, ops []effects.Op) ([]effects.Answer, error)

	Open(ctx context.Context, o effects.Open) (effects.Lease, error)
	Claim(ctx context.Context, c effects.Claim) (*effects.Lease, error)
	Heartbeat(ctx context.Context, account int64, runID, lease, logPosition string) (effects.RunView, error)
	Release(ctx context.Context, account int64, runID, lease, logPosition string) (effects.RunView, error)
	Close(ctx context.Context, account int64, runID, lease, outcome, logPosition string) (effects.RunView, error)
	Run(ctx context.Context, account int64, runID string, wait time.Duration) (effects.RunView, error)
	SaveCheckpoint(ctx context.Context, account int64, runID, lease string, turn int64, state, occurrences []byte, logPosition string) (string, error)
	Checkpoint(ctx context.Context, account int64, runID string) (effects.Checkpoint, error)

	Effect(ctx context.Context, account int64, effectID string) (effects.EffectView, error)
	Looks(ctx context.Context, effectID string) (effects.LooksView, error)
	LookNow(ctx context.Context, effectID string) (soon bool, err error)
	Queue(ctx context.Context, q effects.QueueQuery) (effects.QueuePage, error)
	Decide(ctx context.Context, p effects.Person, list []effects.Decide) ([]effects.DecideResult, error)
	Undo(ctx context.Context, p effects.Person, u effects.Undo) (effects.DecideAnswer, error)
	AddEvidence(ctx context.Context, p effects.Person, a effects.AddEvidence) (effects.DecideAnswer, error)

	ObserveReport(ctx context.Context, q effects.ObserveQuery) ([]effects.ObservedTool, error)
	ObservedCalls(ctx context.Context, q effects.ObserveQuery) (list []effects.ObservedCall, next string, err error)
	ClaimLookups(ctx context.Context, c effects.ClaimLookups) ([]effects.LookupQuestion, error)
	AnswerLookup(ctx context.Context, account int64, id string, brought []byte) (effects.LookupVerdict, error)
	Receive(ctx context.Context, inbox string, h http.Header, body []byte) (effects.Received, error)

	Logs(ctx context.Context) ([]effects.LogState, error)
	AcknowledgeLog(ctx context.Context, p effects.Person, log int64, note string) error
	CloseLogRun(ctx context.Context, log int64, runID, outcome string) error

	Gap(ctx context.Context) (*effects.GapView, error)
	AcknowledgeGap(ctx context.Context, p effects.Person, note string) error
	EndGap(ctx context.Context, p effects.Person, note string) error
}

// Access is what the handlers ask of [access.Service].
type Access interface {
	Authenticate(ctx context.Context, bearer string) (access.Identity, error)
	Record(ctx context.Context, r audit.Row) error
}

// Options are what the handlers have to be told.
type Options struct {
	Engine     Engine
	Access     Access
	Deliveries Deliveries
	Payments   Payments
	// PublicURL is where people reach the pages, for the links in answers; "" makes
	// them relative.
	PublicURL string
	// Version is the program's, for the API's description.
	Version string
	// Ready says why the server cannot work now; nil when it can.
	Ready func(context.Context) error
}

// API holds what the handlers share. Safe for concurrent use.
type API struct {
	engine     Engine
	access     Access
	deliveries Deliveries
	payments   Payments
	public     string
	ready      func(context.Context) error
	openAPI    []byte
}

// Register puts every route on e.
func Register(e *echo.Echo, o Options) error {
	a := &API{engine: o.Engine, access: o.Access, deliveries: o.Deliveries, payments: o.Payments, public: strings.TrimRight(o.PublicURL, "/"), ready: o.Ready}
	document, err := describe(routes, o.Version)
	if err != nil {
		return err
	}
	a.openAPI = document
	for _, r := range routes {
		e.Add(r.method, r.path, a.serve(r), web.Timeout(r.timeout()))
	}
	return nil
}

// serve is what every route has in common: who is calling, and may they.
func (a *API) serve(r route) echo.HandlerFunc {
	return func(c echo.Context) error {
		who, err := a.authenticate(c, r.who)
		if err != nil {
			return err
		}
		return r.handle(a, c, who)
	}
}
