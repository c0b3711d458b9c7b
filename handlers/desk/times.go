package desk

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // people's zones, also where the system has no zone data

	"quittance/views"
)

// clock shows times to one person: in their zone, which is always named.
type clock struct {
	zone *time.Location
	now  time.Time
}

// at shows a moment; the day is left out only when it is today.
func (c clock) at(t time.Time) views.Time {
	if t.IsZero() {
		return views.Time{}
	}
	local, now := t.In(c.zone), c.now.In(c.zone)
	layout := "2 Jan 2006, 15:04:05 MST"
	switch {
	case sameDay(local, now):
		layout = "15:04:05 MST"
	case local.Year() == now.Year():
		layout = "2 Jan, 15:04:05 MST"
	}
	return views.Time{ISO: iso(t), Text: local.Format(layout), UTC: utc(t)}
}

// short is at without the day, for a list that has the days as headings.
func (c clock) short(t time.Time) views.Time {
	return views.Time{ISO: iso(t), Text: t.In(c.zone).Format("15:04:05"), UTC: utc(t)}
}

// day is the heading of a day, with the zone it is a day of.
func (c clock) day(t time.Time) string { return t.In(c.zone).Format("Monday 2 January 2006, MST") }

func (c clock) sameDay(a, b time.Time) bool { return sameDay(a.In(c.zone), b.In(c.zone)) }

func sameDay(a, b time.Time) bool {
	y, m, d := a.Date()
	y2, m2, d2 := b.Date()
	return y == y2 && m == m2 && d == d2
}

// iso is the moment for programs: UTC, RFC 3339.
func iso(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

func utc(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// span says how long something is, in the two largest units that matter.
func span(d time.Duration) string {
	d = max(0, d)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d/time.Second))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d/time.Minute))
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d/time.Hour), int(d%time.Hour/time.Minute))
	case d < 14*24*time.Hour:
		return fmt.Sprintf("%d d %d h", int(d/(24*time.Hour)), int(d%(24*time.Hour)/time.Hour))
	}
	return fmt.Sprintf("%d days", int(d/(24*time.Hour)))
}

// exactly says a declared length whole, "1 min 30 s".
func exactly(d time.Duration) string {
	if d == 0 {
		return "0 s"
	}
	var words []string
	for _, u := range []struct {
		d    time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
		if n := d / u.d; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, u.name))
			d %= u.d
		}
	}
	return strings.Join(words, " ")
}
