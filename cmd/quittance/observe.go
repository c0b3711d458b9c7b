package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"quittance/handlers/api"
	"quittance/reconcile/effects"
)

type observeCmd struct {
	Report observeReportCmd `cmd:"" help:"What would have been replayed, held or paused, and the money in it."`
}

type observeReportCmd struct {
	dataFlag
	Tool    string        `help:"Only this tool." placeholder:"NAME"`
	Account string        `help:"Only this account." placeholder:"NAME"`
	Since   time.Duration `help:"Only the last so long; all when absent." placeholder:"168h"`
	JSON    bool          `help:"As JSON, like GET /v1/observe."`
}

// Run prints the report. It reads only.
func (c *observeReportCmd) Run(ctx context.Context, env environment, out output) (err error) {
	db, done, err := openDatabase(ctx, env, c.dataFlag)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	q := effects.ObserveQuery{Tool: c.Tool, Account: c.Account}
	if c.Since > 0 {
		now, err := db.Now(ctx)
		if err != nil {
			return err
		}
		q.Since = now.Add(-c.Since)
	}
	list, err := effects.ReportObserved(ctx, db, q)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(out).Encode(api.ObserveWire(q, list))
	}
	return printObserved(out, list)
}

func printObserved(out io.Writer, list []effects.ObservedTool) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, "No call was observed. A tool is observed with mode: observe in the policy.")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for _, t := range list {
		fmt.Fprintf(w, "%s\n", t.Tool)
		for _, s := range t.Sums {
			var money []string
			for _, a := range s.Amounts {
				money = append(money, a.Display())
			}
			if s.Unpriced > 0 {
				money = append(money, fmt.Sprintf("%d without an amount", s.Unpriced))
			}
			fmt.Fprintf(w, "  %s\t%d\t%s\t%s\n", s.What, s.Calls, strings.Join(money, ", "), s.Words())
		}
	}
	return w.Flush()
}
