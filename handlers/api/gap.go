package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"quittance/client"
	"quittance/web"
)

// gap tells whether this server's log is known to have lost events.
func (a *API) gap(c echo.Context, _ identity) error {
	g, err := a.engine.Gap(c.Request().Context())
	if err != nil {
		return err
	}
	if g == nil {
		return web.JSON(c, http.StatusOK, client.LogState{State: "whole"})
	}
	out := client.LogState{State: "behind", FoundAt: momentOrNil(g.FoundAt), FoundBy: g.FoundBy}
	if !g.AcknowledgedAt.IsZero() {
		out.State, out.AcknowledgedAt, out.AcknowledgedBy = "acknowledged", momentOrNil(g.AcknowledgedAt), g.AcknowledgedBy
	}
	return web.JSON(c, http.StatusOK, out)
}

func (a *API) acknowledgeGap(c echo.Context, who identity) error {
	in, err := web.Decode[client.LogNote](c)
	if err != nil {
		return err
	}
	if err := a.engine.AcknowledgeGap(c.Request().Context(), who.person(), in.Note); err != nil {
		return a.refused(err)
	}
	return a.gap(c, who)
}

func (a *API) endGap(c echo.Context, who identity) error {
	in, err := web.Decode[client.LogNote](c)
	if err != nil {
		return err
	}
	if err := a.engine.EndGap(c.Request().Context(), who.person(), in.Note); err != nil {
		return a.refused(err)
	}
	return a.gap(c, who)
}
