package desk

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"quittance/ledger/audit"
	"quittance/reconcile/access"
	"quittance/web"
)

// AuditAPI writes what people are denied over the API into the audit trail. What they
// change is written with the change itself. Agents' refusals are none of it: they are
// kept with the run.
func AuditAPI(who *access.Service, log *slog.Logger) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			err := next(c)
			if err == nil || c.Request().Method == http.MethodGet || !strings.HasPrefix(c.Path(), "/v1/") {
				return err
			}
			doc, ok := errors.AsType[web.Document](err)
			if !ok {
				return err
			}
			status, _, _ := doc.Document()
			row := audit.Row{Via: "api", Action: "api " + c.Path(), Outcome: "denied", Note: http.StatusText(status), RequestID: web.RequestID(c)}
			if id := c.Param("effect_id"); id != "" && len(id) <= 64 {
				row.Subject = "effect:" + id
			}
			ctx := context.WithoutCancel(c.Request().Context()) // the request's time is over already
			found, authErr := who.Authenticate(ctx, web.Bearer(c))
			switch {
			case authErr == nil && found.Account != nil && status != http.StatusForbidden:
				return err
			case authErr == nil && found.Person != nil:
				row.Person, row.Actor = found.Person.ID, found.Person.Name
			case authErr == nil:
				row.Actor = "account " + found.Account.Name
			case status != http.StatusUnauthorized:
				return err
			}
			if status < 500 {
				if err := who.Record(ctx, row); err != nil {
					log.Error("couldn't write the audit trail", "route", c.Path(), "error", err)
				}
			}
			return err
		}
	}
}

// AuditCrossOrigin writes that a page of another site tried to send a form.
func AuditCrossOrigin(who *access.Service, log *slog.Logger) func(*http.Request) {
	return func(r *http.Request) {
		row := audit.Row{Via: "page", Action: "cross_origin", Outcome: "denied", Note: "a form of another site"}
		if err := who.Record(context.WithoutCancel(r.Context()), row); err != nil {
			log.Error("couldn't write the audit trail", "error", err)
		}
	}
}
