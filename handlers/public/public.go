// Package public answers payers: the page of a receipt, and the same as JSON. Whoever knows
// a receipt's address may read it; whoever does not learns nothing.
package public

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"quittance/reconcile/payments"
	"quittance/reconcile/policy"
	"quittance/views"
	"quittance/web"
)

// Limits of one network address in a minute. A receipt's token cannot be guessed; this keeps
// whoever tries from filling logs and asking the database for it. Several payers may share
// an address.
const (
	anyLimit  = 600
	missLimit = 30
)

// Options are what the pages have to be told.
type Options struct {
	Payments *payments.Engine
	Policy   func() *policy.Policy
	Log      *slog.Logger
}

type public struct {
	pay    *payments.Engine
	policy func() *policy.Policy
	log    *slog.Logger
	asked  *web.Limiter
	missed *web.Limiter // those that named no receipt; what does name one is still answered
}

// Register puts the receipts on e.
func Register(e *echo.Echo, o Options) {
	p := &public{pay: o.Payments, policy: o.Policy, log: o.Log, asked: web.NewLimiter(), missed: web.NewLimiter()}
	// All that begins like a receipt is answered alike, whatever follows.
	e.GET("/r/*", p.receipt, web.Timeout(web.DefaultTimeout))
}

func (p *public) receipt(c echo.Context) error {
	h := c.Response().Header()
	h.Set("Vary", "Accept")
	h.Set("X-Robots-Tag", "noindex, nofollow, noarchive")
	h.Set("Referrer-Policy", "no-referrer")
	address := web.Address(c)
	if p.asked.Count(address) > anyLimit {
		return p.refuse(c, http.StatusTooManyRequests)
	}
	r, err := p.pay.ReceiptOf(c.Request().Context(), c.Param("*"))
	if refusal, ok := errors.AsType[*payments.Refusal](err); ok && refusal.Code == payments.CodeNotFound {
		if p.missed.Count(address) > missLimit {
			return p.refuse(c, http.StatusTooManyRequests)
		}
		return p.refuse(c, http.StatusNotFound)
	}
	if err != nil {
		p.log.Error("a receipt failed", "request_id", web.RequestID(c), "error", err)
		return p.refuse(c, http.StatusInternalServerError)
	}
	t := p.tell(r)
	if wantsJSON(c) {
		return answer(c, http.StatusOK, t.json())
	}
	return web.RenderPrivate(c, http.StatusOK, views.ReceiptPage(t.page()))
}

// refuse answers with one and the same text for a status: it tells nothing of the address.
func (p *public) refuse(c echo.Context, status int) error {
	heading, text := "No such receipt", "This address names no receipt. Look at the link that you were given."
	switch status {
	case http.StatusTooManyRequests:
		c.Response().Header().Set("Retry-After", "60")
		heading, text = "Too many requests", "Try again in a minute."
	case http.StatusInternalServerError:
		heading, text = "Something broke here", "Your payment is not touched by it. Try again in a minute."
	}
	if wantsJSON(c) {
		return answer(c, status, map[string]string{"title": heading, "detail": text})
	}
	return web.RenderPrivate(c, status, views.NoReceiptPage(web.Assets(), heading, text))
}

func wantsJSON(c echo.Context) bool {
	accept := c.Request().Header.Get("Accept")
	return strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
}

func answer(c echo.Context, status int, body any) error {
	c.Response().Header().Set("Cache-Control", "private, no-store")
	return c.JSON(status, body)
}
