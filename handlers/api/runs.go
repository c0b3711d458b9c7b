package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"quittance/client"
	"quittance/reconcile/effects"
	"quittance/reconcile/payments"
	"quittance/web"
)

func (a *API) openRun(c echo.Context, who identity) error {
	runID, err := web.Param(c, "run_id")
	if err != nil {
		return err
	}
	if strings.HasPrefix(runID, payments.RunPrefix) {
		return web.Invalid(web.FieldError{Pointer: "run_id", Detail: "begins with " + payments.RunPrefix + ", which names the runs of payments"})
	}
	in, err := web.Decode[client.OpenRequest](c)
	if err != nil {
		return err
	}
	lease, err := a.engine.Open(c.Request().Context(), effects.Open{
		Account: who.account(), RunID: runID, Agent: in.Agent, Worker: in.Worker, AttemptID: in.AttemptID,
		Lease: seconds(in.LeaseSeconds), LogPosition: in.LogPosition,
	})
	if err != nil {
		return a.refused(err)
	}
	return web.JSON(c, http.StatusOK, leaseWire(lease))
}

// claimRun answers at once, or, asked to wait, when a run is ready.
func (a *API) claimRun(c echo.Context, who identity) error {
	in, err := web.Decode[client.ClaimRequest](c)
	if err != nil {
		return err
	}
	wait, err := waitOf(c.QueryParam("wait"), "?wait")
	if err != nil {
		return err
	}
	claim := effects.Claim{
		Account: who.account(), Agents: in.Agents, Worker: in.Worker, AttemptID: in.AttemptID,
		Lease: seconds(in.LeaseSeconds), Wait: wait,
	}
	ctx := c.Request().Context()
	waiting, cancel := untilStopping(ctx)
	defer cancel()
	lease, err := a.engine.Claim(waiting, claim)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		claim.Wait = 0
		lease, err = a.engine.Claim(ctx, claim)
	}
	if err != nil {
		return a.refused(err)
	}
	if lease == nil {
		return c.NoContent(http.StatusNoContent)
	}
	return web.JSON(c, http.StatusOK, leaseWire(*lease))
}

// getRun answers at once, or, asked to wait, when the run may go on. A server that
// stops answers its waiters with what is true then.
func (a *API) getRun(c echo.Context, who identity) error {
	runID, err := web.Param(c, "run_id")
	if err != nil {
		return err
	}
	wait, err := waitOf(c.QueryParam("wait"), "?wait")
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	waiting, cancel := untilStopping(ctx)
	defer cancel()
	v, err := a.engine.Run(waiting, who.account(), runID, wait)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		v, err = a.engine.Run(ctx, who.account(), runID, 0)
	}
	if err != nil {
		return a.refused(err)
	}
	return web.JSON(c, http.StatusOK, a.runWire(v))
}

// untilStopping ends with ctx, and when the server begins to stop.
func untilStopping(ctx context.Context) (context.Context, context.CancelFunc) {
	waiting, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-web.Stopping(ctx):
			cancel()
		case <-waiting.Done():
		}
	}()
	return waiting, cancel
}

// leaseCall parses what heartbeat and release have in common.
func (a *API) leaseCall(c echo.Context, who identity, call func(ctx context.Context, account int64, runID, lease, position string) (effects.RunView, error)) error {
	runID, err := web.Param(c, "run_id")
	if err != nil {
		return err
	}
	in, err := web.Decode[client.LeaseRequest](c)
	if err != nil {
		return err
	}
	v, err := call(c.Request().Context(), who.account(), runID, in.Lease, in.LogPosition)
	if err != nil {
		return a.refused(err)
	}
	return web.JSON(c, http.StatusOK, leaseAnswer(v))
}

func (a *API) heartbeat(c echo.Context, who identity) error {
	return a.leaseCall(c, who, a.engine.Heartbeat)
}

func (a *API) release(c echo.Context, who identity) error {
	return a.leaseCall(c, who, a.engine.Release)
}

func (a *API) closeRun(c echo.Context, who identity) error {
	runID, err := web.Param(c, "run_id")
	if err != nil {
		return err
	}
	in, err := web.Decode[client.CloseRequest](c)
	if err != nil {
		return err
	}
	v, err := a.engine.Close(c.Request().Context(), who.account(), runID, in.Lease, in.Outcome, in.LogPosition)
	if err != nil {
		return a.refused(err)
	}
	return web.JSON(c, http.StatusOK, leaseAnswer(v))
}

func (a *API) saveCheckpoint(c echo.Context, who identity) error {
	runID, err := web.Param(c, "run_id")
	if err != nil {
		return err
	}
	text, err := web.Param(c, "turn")
	if err != nil {
		return err
	}
	turn, err := strconv.ParseInt(text, 10, 64)
	if err != nil || turn < 0 {
		return web.Invalid(web.FieldError{Detail: "the turn in the path must be a whole number from 0"})
	}
	in, err := web.Decode[client.SaveCheckpoint](c)
	if err != nil {
		return err
	}
	counts, err := json.Marshal(in.Occurrences)
	if err != nil {
		return fmt.Errorf("couldn't write the occurrences: %w", err)
	}
	position, err := a.engine.SaveCheckpoint(c.Request().Context(), who.account(), runID, in.Lease, turn, in.State, counts, in.LogPosition)
	if err != nil {
		return a.refused(err)
	}
	c.Response().Header().Set(client.PositionHeader, position) // a 204 has no body to hold it
	return c.NoContent(http.StatusNoContent)
}

func (a *API) getCheckpoint(c echo.Context, who identity) error {
	runID, err := web.Param(c, "run_id")
	if err != nil {
		return err
	}
	saved, err := a.engine.Checkpoint(c.Request().Context(), who.account(), runID)
	if err != nil {
		return a.refused(err)
	}
	out := client.Checkpoint{Turn: saved.Turn, SavedAt: moment(saved.SavedAt), State: saved.State}
	for _, x := range saved.Skipped {
		out.Skipped = append(out.Skipped, client.CheckpointMark{Turn: x.Turn, SavedAt: moment(x.SavedAt), Damaged: true})
	}
	if len(saved.Occurrences) > 0 {
		if err := json.Unmarshal(saved.Occurrences, &out.Occurrences); err != nil {
			return fmt.Errorf("couldn't read the stored occurrences: %w", err)
		}
	}
	return web.JSON(c, http.StatusOK, out)
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// waitOf reads how long to wait; more than maxWait is cut to it, because the caller
// asks again anyway.
func waitOf(text, pointer string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, web.Invalid(web.FieldError{Pointer: pointer, Detail: "must be a time such as 30s"})
	}
	return min(d, maxWait), nil
}
