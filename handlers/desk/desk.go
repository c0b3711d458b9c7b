// Package desk answers people in a browser. A handler parses, asks reconcile, and
// shows what it says; what may happen to an effect is decided in reconcile/effects
// alone.
//
// Every page works as plain links and forms. A form that changes something passes one
// wrapper: who is signed in, their role, the form's token, and the audit trail.
package desk

import (
	"log/slog"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"quittance/ledger"
	"quittance/reconcile/access"
	"quittance/reconcile/bulk"
	"quittance/reconcile/effects"
	"quittance/reconcile/notify"
	"quittance/reconcile/payments"
	"quittance/reconcile/recoveries"
	"quittance/reconcile/refunds"
	"quittance/reconcile/seal"
	"quittance/reconcile/wake"
	"quittance/web"
)

// Options are what the pages have to be told.
type Options struct {
	Engine *effects.Engine
	Access *access.Service
	DB     *ledger.DB // for reading, and for drafts
	Hub    *notify.Hub
	Bulk   *bulk.Service
	Wake   *wake.Service
	Sealer *seal.Sealer // nil: the page says nothing of the sealed record
	// Payments, Refunds and Recoveries are what finance looks at.
	Payments   *payments.Engine
	Refunds    *refunds.Engine
	Recoveries *recoveries.Engine
	Log        *slog.Logger
	// PublicURL is where people reach the pages; https makes the cookie secure.
	PublicURL string
	Version   string
}

// Desk holds what the handlers share. Safe for concurrent use.
type Desk struct {
	engine   *effects.Engine
	access   *access.Service
	db       *ledger.DB
	hub      *notify.Hub
	bulk     *bulk.Service
	wake     *wake.Service
	sealer   *seal.Sealer
	pay      *payments.Engine
	refund   *refunds.Engine
	recovery *recoveries.Engine
	log      *slog.Logger
	cookie   web.SessionCookie
	public   string
	version  string
	began    time.Time
	names    names
}

// Register puts every page on e.
func Register(e *echo.Echo, o Options) *Desk {
	d := &Desk{
		engine: o.Engine, access: o.Access, db: o.DB, hub: o.Hub, bulk: o.Bulk, wake: o.Wake, sealer: o.Sealer, pay: o.Payments, refund: o.Refunds,
		recovery: o.Recoveries, log: o.Log,
		cookie: web.SessionCookie{Secure: strings.HasPrefix(o.PublicURL, "https://")},
		public: strings.TrimRight(o.PublicURL, "/"), version: o.Version, began: time.Now(),
	}
	web.RegisterStatic(e)
	for _, r := range routes {
		timeout := web.DefaultTimeout
		if r.stream {
			timeout = 24 * time.Hour
		}
		e.Add(r.method, r.path, d.serve(r), web.Timeout(timeout))
	}
	e.RouteNotFound("/*", d.nowhere)
	return d
}
