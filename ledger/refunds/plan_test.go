package refunds_test

import (
	"context"
	"regexp"
	"strconv"
	"testing"
	"time"

	"quittance/ledger"
	"quittance/ledger/ledgertest"
	"quittance/ledger/refunds"
)

// counted runs each statement once more, and adds up the pages that it reads.
type counted struct {
	*ledger.DB
	t     testing.TB
	pages int
	plan  []string
}

var hits = regexp.MustCompile(`shared hit=(\d+)(?: read=(\d+))?|shared read=(\d+)`)

func (c *counted) Select(ctx context.Context, dest any, query string, args ...any) error {
	c.plan = nil
	if err := c.DB.Select(ctx, &c.plan, "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) "+query, args...); err != nil {
		c.t.Fatal(err)
	}
	for _, l := range c.plan {
		if m := hits.FindStringSubmatch(l); m != nil { // the first line of a plan holds all below it
			for _, n := range m[1:] {
				pages, _ := strconv.Atoi(n)
				c.pages += pages
			}
			break
		}
	}
	return c.DB.Select(ctx, dest, query, args...)
}

// The first page costs what it shows, not what is stored, whatever is asked; sums cost what
// is open.
func TestPagesReadWhatTheyShow(t *testing.T) {
	t.Parallel()
	db := ledgertest.New(t)
	ledgertest.Refunds(t, db, 60_000, 6_000)
	now := time.Now()
	day := func(n int) time.Time { return now.AddDate(0, 0, -n) }
	for name, f := range map[string]refunds.Filter{
		"open": {State: "open"}, "owed": {State: "owed"}, "all": {}, "refunded": {State: "confirmed"}, "asset": {State: "open", Network: "bank:main", Asset: "asset-1"},
		"payer": {State: "open", Payer: "payer-77"}, "payer, all": {Payer: "payer-77"}, "2-7 days": {State: "open", From: day(7), To: day(1)}, "61+": {State: "open", To: day(60)},
		"gateway": {State: "open", Gateway: "gateway-3"}, "days": {From: day(40), To: day(30)},
		"no such gateway": {State: "open", Gateway: "nobodys"}, "no such gateway, all": {Gateway: "nobodys"}, "no such rail": {State: "open", Network: "nobodys"}, "no such rail, all": {Network: "nobodys"},
		"no such asset": {State: "open", Asset: "nobodys"}, "no such asset, all": {Asset: "nobodys"}, "no such reason": {State: "open", Reason: "none"}, "no such reason, all": {Reason: "none"},
	} {
		c := &counted{DB: db, t: t}
		f.Limit = 51
		rows, err := refunds.Page(t.Context(), c, f)
		if err != nil {
			t.Fatal(err)
		}
		if c.pages > 1500 || c.pages == 0 {
			t.Errorf("%s: %d rows cost %d pages\n%v", name, len(rows), c.pages, c.plan)
		}
	}
	c := &counted{DB: db, t: t}
	sums, err := refunds.Sums(t.Context(), c, refunds.Filter{State: "open"}, [4]time.Time{day(1), day(7), day(30), day(60)})
	if err != nil || len(sums) == 0 {
		t.Fatal(err)
	}
	if c.pages > 1000 {
		t.Errorf("the sums of what is open cost %d pages\n%v", c.pages, c.plan)
	}
	var n int64
	for _, s := range sums {
		n += s.Count
	}
	if n != 6_000 {
		t.Errorf("the buckets hold %d of 6000", n)
	}
}
