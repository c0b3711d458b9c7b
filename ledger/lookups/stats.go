package lookups

import (
	"context"
	"fmt"
	"time"

	"github.com/lib/pq"

	"quittance/ledger"
)

// Stats is how the look-ups of one tool went in a span of time.
type Stats struct {
	Tool   string      `db:"tool"`
	Asked  int64       `db:"asked"`
	Read   int64       `db:"read"`   // those that could look
	Proven int64       `db:"proven"` // those that proved something
	Median float64     `db:"median"` // seconds
	Slow   float64     `db:"slow"`   // seconds; nineteen of twenty took no longer
	Last   ledger.Time `db:"last"`

	// The latest that could not look; zero and "" for none.
	ErrorAt  ledger.Time `db:"error_at"`
	ErrorWhy string      `db:"error_why"`
	// Mended: one that could look came after it.
	Mended bool `db:"mended"`
}

// StatsOf sums the answers of the tools that came in the last span.
func StatsOf(ctx context.Context, r ledger.Reader, tools []string, span time.Duration) ([]Stats, error) {
	var rows []Stats
	err := r.Select(ctx, &rows, `
		WITH recent AS MATERIALIZED (
			SELECT tool, answered_at, latency, verdict, CASE WHEN reason IN ('could_not','partial','wrong_world') THEN why END AS failed
			FROM lookups WHERE tool = ANY($1::text[]) AND answered_at > clock_timestamp() - make_interval(secs => $2)
		), failed AS (
			SELECT DISTINCT ON (tool) tool, answered_at, failed FROM recent WHERE failed IS NOT NULL ORDER BY tool, answered_at DESC
		)
		SELECT s.tool, s.asked, s.read, s.proven, s.median, s.slow, s.last, f.answered_at AS error_at, COALESCE(f.failed, '') AS error_why, COALESCE(s.last_read > f.answered_at, false) AS mended
		FROM (SELECT tool, count(*) AS asked, count(*) FILTER (WHERE failed IS NULL) AS read, count(*) FILTER (WHERE verdict <> 'inconclusive') AS proven,
				percentile_disc(0.5) WITHIN GROUP (ORDER BY latency) AS median, percentile_disc(0.95) WITHIN GROUP (ORDER BY latency) AS slow,
				max(answered_at) AS last, max(answered_at) FILTER (WHERE failed IS NULL) AS last_read
			FROM recent GROUP BY tool) AS s
		LEFT JOIN failed f ON f.tool = s.tool ORDER BY s.tool`, pq.Array(tools), span.Seconds())
	if err != nil {
		return nil, fmt.Errorf("couldn't sum look-ups: %w", err)
	}
	return rows, nil
}
