package desk_test

import (
	"context"
	"regexp"
	"testing"

	"quittance/ledger"
	"quittance/ledger/audit"
	"quittance/ledger/desk"
	"quittance/ledger/lookups"
	"quittance/ledger/queue"
)

// planned reads the plan of each statement before it runs it, and objects to a
// sequential scan of a table that grows and that the seed fills.
type planned struct {
	*ledger.DB
	t    *testing.T
	what string
	n    *int
}

var scan = regexp.MustCompile(`Seq Scan on (effects|effect_events|waiting|runs|audit|lookups|lookup_schedule)\b`)

func (p planned) read(ctx context.Context, query string, args []any) {
	p.t.Helper()
	var lines []string
	if err := p.DB.Select(ctx, &lines, "EXPLAIN "+query, args...); err != nil {
		p.t.Errorf("%s: %v", p.what, err)
	}
	*p.n++
	for _, l := range lines {
		if scan.MatchString(l) {
			p.t.Errorf("%s: %s\n%v", p.what, l, lines)
			return
		}
	}
}

func (p planned) Get(ctx context.Context, dest any, query string, args ...any) error {
	p.read(ctx, query, args)
	return p.DB.Get(ctx, dest, query, args...)
}

func (p planned) Select(ctx context.Context, dest any, query string, args ...any) error {
	p.read(ctx, query, args)
	return p.DB.Select(ctx, dest, query, args...)
}

// TestPlans: no list of the desk reads a growing table from end to end.
func TestPlans(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed(40_000, 8_000)
	ctx, n := t.Context(), 0
	var some struct {
		ID  string `db:"id"`
		Run int64  `db:"run"`
	}
	if err := w.db.Get(ctx, &some, `SELECT id, run FROM seed WHERE open LIMIT 1`); err != nil {
		t.Fatal(err)
	}
	first, err := queue.Page(ctx, w.db, queue.Filter{Limit: 51})
	if err != nil {
		t.Fatal(err)
	}
	place := &queue.Place{Since: first[50].WaitingSince.Time, ID: first[50].ID}
	for name, f := range map[string]queue.Filter{
		"first page": {}, "later page": {After: place}, "tool": {Tool: "tool-7"}, "agent": {Agent: "agent-3"}, "account": {Account: "acme"}, "run": {RunID: "run-77"},
		"business key": {BusinessKey: "Vendor 1/INV-35001"}, "state": {State: "held"}, "contradicted": {State: "contradicted"}, "second": {State: "second"},
		"confirm": {State: "confirm"}, "words": {Words: "inv-39000"}, "tool, later": {Tool: "tool-7", After: place},
		"overdue": {Overdue: &queue.Overdue{Default: 3600e9}}, "age": {Older: 3600e9},
	} {
		f.Limit = 51
		if _, err := queue.Page(ctx, planned{w.db, t, "queue, " + name, &n}, f); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	at := func(what string) planned { return planned{w.db, t, what, &n} }
	for _, by := range []string{"agent", "late_agent", "person", "look_up", "vendor_key", "run_closed"} {
		if _, err := desk.ClosedPage(ctx, at("closed by "+by), desk.ClosedFilter{By: by, Limit: 51}); err != nil {
			t.Error(err)
		}
	}
	_, err = lookups.Of(ctx, at("looks of an effect"), some.ID, 100)
	if err != nil {
		t.Error(err)
	}
	if _, err = lookups.NotOurs(ctx, at("not ours"), some.ID); err != nil {
		t.Error(err)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	_, err = desk.ClosedPage(ctx, at("decided"), desk.ClosedFilter{Unused: true, Limit: 51})
	check(err)
	_, err = desk.CountUnused(ctx, at("decided, count"), 100)
	check(err)
	_, err = queue.CountViews(ctx, at("views"))
	check(err)
	_, err = queue.NamesWaiting(ctx, at("names"), 1000)
	check(err)
	_, err = desk.RunsPage(ctx, at("runs"), desk.RunFilter{Limit: 51})
	check(err)
	_, err = desk.RunsPage(ctx, at("runs by name"), desk.RunFilter{Name: "run-77", Limit: 51})
	check(err)
	_, err = desk.ClosedPage(ctx, at("closed by anyone but the agent"), desk.ClosedFilter{Limit: 51})
	check(err)
	_, err = desk.RunByID(ctx, at("run"), some.Run)
	check(err)
	_, err = desk.EffectsOfRun(ctx, at("effects of a run"), some.Run, nil, 51)
	check(err)
	_, err = desk.EventsOfRun(ctx, at("log of a run"), some.Run, 200)
	check(err)
	_, err = desk.LeasesOf(ctx, at("leases"), some.Run, 50)
	check(err)
	for name, f := range map[string]audit.Filter{"all": {}, "person": {Person: w.petra.ID}, "subject": {Subject: "effect:" + some.ID}, "denied": {Outcome: "denied"}, "later": {Before: 500}} {
		f.Limit = 51
		_, err = audit.Page(ctx, at("audit, "+name), f)
		check(err)
	}
	if n < 35 {
		t.Errorf("only %d plans were read", n)
	}
}
