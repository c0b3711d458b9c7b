package desk

import (
	"net/url"
	"strings"
	"time"

	"quittance/ledger/money"
	"quittance/reconcile/access"
	"quittance/reconcile/refunds"
	"quittance/views"
)

// moneyOf is an amount of an asset of a rail. One that the policy does not declare is shown
// in its smallest unit, and says so.
func (d *Desk) moneyOf(network, asset string, x money.Atomic) *views.Money {
	if a := d.engine.Policy().RailAsset(network, asset); a != nil {
		m := money.Of(x, a.Asset)
		return amount(&m)
	}
	raw := money.Of(x, money.Asset{Code: "units"})
	m := amount(&raw)
	m.Code = "units of " + cutText(asset, 14)
	return m
}

// listed is an amount as a list shows it: the value is exact, but of a token the zeros at
// its end are left out, down to two decimals. What people read as money keeps its own.
func (d *Desk) listed(network, asset string, x money.Atomic) *views.Money {
	m := d.moneyOf(network, asset, x)
	if a := d.engine.Policy().RailAsset(network, asset); a != nil {
		m.Value = shorter(m.Value, a.Asset.Code)
	}
	return m
}

// listedDecimals are those that an amount of a list keeps, also where they are zeros.
const listedDecimals = 2

func shorter(value, code string) string {
	if _, err := money.Currency(code); err == nil {
		return value
	}
	point := strings.IndexByte(value, '.')
	for point >= 0 && len(value)-point-1 > listedDecimals && value[len(value)-1] == '0' {
		value = value[:len(value)-1]
	}
	return value
}

// assetName is how a person knows an asset: its code, or what its rail calls it.
func (d *Desk) assetName(network, asset string) string {
	if a := d.engine.Policy().RailAsset(network, asset); a != nil {
		return a.Asset.Code
	}
	return cutText(asset, 20) + " (not declared)"
}

func (d *Desk) railName(network string) string {
	if r := d.engine.Policy().Rail(network); r != nil {
		return r.Name
	}
	return network
}

// shortName is an address of a rail as people compare them: its begin and its end. The
// whole stands among the details.
func shortName(s string) string {
	if strings.HasPrefix(s, "0x") && len(s) > 20 {
		return s[:8] + "…" + s[len(s)-6:]
	}
	return cutText(s, nameShown)
}

// plainMoney is an amount in a sentence.
func plainMoney(m *views.Money) string { return m.Value + " " + m.Code }

func refundState(state string) *views.State {
	words := map[string]views.State{
		refunds.Owed: {Kind: "unknown", Word: "Owed"}, refunds.Approved: {Kind: "info", Word: "Approved"}, refunds.Batched: {Kind: "info", Word: "In a batch"},
		refunds.Sending: {Kind: "info", Word: "Being sent"}, refunds.Sent: {Kind: "info", Word: "Sent, not seen yet"}, refunds.Unknown: {Kind: "danger", Word: "Not known"},
		refunds.Confirmed: {Kind: "ok", Word: "Refunded"}, refunds.Returned: {Kind: "danger", Word: "Came back"}, refunds.Held: {Kind: "held", Word: "Held"},
		refunds.WrittenOff: {Kind: "stop", Word: "Written off"}, refunds.Void: {Kind: "plain", Word: "Void"},
	}
	s, ok := words[state]
	if !ok {
		s = views.State{Kind: "plain", Word: state}
	}
	return &s
}

func reasonText(reason string) string {
	switch reason {
	case "late":
		return "came after its order was over"
	case "duplicate":
		return "the order was paid already"
	case "over":
		return "more than was asked"
	case "failed_call":
		return "what it paid for was not done"
	case "given_back":
		return "a person gave it back"
	}
	return reason
}

func classText(class string) string {
	switch class {
	case "applied":
		return "pays its order"
	case "late":
		return "came late"
	case "duplicate":
		return "duplicate"
	case "under":
		return "less than is asked"
	case "unmatched":
		return "no order known"
	case "failed_call":
		return "not earned"
	case "given_back":
		return "given back by a person"
	}
	return class
}

// ageBounds are the beginnings of the buckets 0-1, 2-7, 8-30 and 31-60 calendar days in a
// zone; what was opened before the last is 61 days old or more.
func ageBounds(now time.Time, zone *time.Location) [4]time.Time {
	y, m, day := now.In(zone).Date()
	at := func(days int) time.Time { return time.Date(y, m, day-days, 0, 0, 0, 0, zone) }
	return [4]time.Time{at(1), at(7), at(30), at(60)}
}

var bucketNames = [5]string{"0-1 days", "2-7", "8-30", "31-60", "61+"}

// calendarDays is how many days lie between two moments on a calendar of a zone.
func calendarDays(from, to time.Time, zone *time.Location) int {
	a, b := from.In(zone), to.In(zone)
	utcDay := func(t time.Time) time.Time {
		y, m, d := t.Date()
		return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	}
	return int(utcDay(b).Sub(utcDay(a)) / (24 * time.Hour))
}

// days is an age in calendar days.
func days(n int) string {
	if n == 1 {
		return "1 day"
	}
	return whole(int64(n)) + " days"
}

// ageCell is how old a row is: calendar days, and the time that has passed.
func ageCell(from, now time.Time, zone *time.Location, late bool) views.Cell {
	n := calendarDays(from, now, zone)
	return views.Cell{Text: line(days(n)), Sub: line(span(now.Sub(from)) + " elapsed"), Num: true, Late: late && n >= lateDays}
}

// lateDays is where the oldest bucket begins.
const lateDays = 61

// bucketBounds are the opening times of a bucket by its number from 1; zero for none.
func bucketBounds(bucket string, b [4]time.Time) (from, to time.Time, ok bool) {
	switch bucket {
	case "0-1":
		return b[0], time.Time{}, true
	case "2-7":
		return b[1], b[0], true
	case "8-30":
		return b[2], b[1], true
	case "31-60":
		return b[3], b[2], true
	case "61":
		return time.Time{}, b[3], true
	}
	return from, to, bucket == ""
}

// report is what the addresses of finance's lists have in common: the zone that days are
// of, days of opening, a bucket of ages, and the moment of which it tells.
type report struct {
	zone     *time.Location
	from, to time.Time
	asOf     time.Time // zero: now
	bucket   string
	problem  string
	values   url.Values // the filter as an address again, without the page
	cursor   string
}

func (d *Desk) report(r *request, names ...string) (p report) {
	q := r.QueryParams()
	p.zone, p.values = r.zone, url.Values{}
	if z, ok := access.Zone(queryText(q, "zone")); ok {
		p.zone = z
	}
	for _, name := range append([]string{"age", "from", "to", "as_of"}, names...) {
		if s := queryText(q, name); s != "" {
			p.values.Set(name, s)
		}
	}
	days := filter{from: p.values.Get("from"), to: p.values.Get("to"), zone: p.zone}
	p.from, p.to, p.problem = days.days()
	if s := p.values.Get("as_of"); s != "" {
		day, err := time.ParseInLocation(time.DateOnly, s, p.zone)
		switch {
		case err != nil:
			p.problem = "A day is written like 2026-05-31."
		default:
			p.asOf = day.AddDate(0, 0, 1) // the end of that day
			if p.asOf.After(r.now) {
				p.asOf = time.Time{}
			}
		}
	}
	p.bucket = p.values.Get("age")
	from, to, ok := bucketBounds(p.bucket, p.bounds(r.now))
	if !ok {
		p.problem = "The age is one of 0-1, 2-7, 8-30, 31-60 and 61 days."
	}
	if from.After(p.from) {
		p.from = from
	}
	if !to.IsZero() && (p.to.IsZero() || to.Before(p.to)) {
		p.to = to
	}
	if len(p.values) > 0 || queryText(q, "zone") != "" {
		p.values.Set("zone", p.zone.String())
	}
	p.cursor = q.Get("cursor")
	return p
}

// at is the moment that the report tells of.
func (p *report) at(now time.Time) time.Time {
	if p.asOf.IsZero() {
		return now
	}
	return p.asOf.Add(-time.Nanosecond)
}

// nowOnly refuses a day for a list that is not folded from the log: it would show what is now
// under that day's name.
func (p *report) nowOnly() {
	if p.values.Get("as_of") != "" {
		p.problem = "This list shows how things stand now. Only refunds are shown as of a day."
	}
}

// bounds of the buckets at that moment.
func (p *report) bounds(now time.Time) [4]time.Time { return ageBounds(p.at(now), p.zone) }

func (p *report) note(r *request) string {
	when := "As of now"
	if !p.asOf.IsZero() {
		when = "As of the end of " + p.asOf.Add(-time.Nanosecond).In(p.zone).Format("2 January 2006") + ", folded from the log"
	}
	return when + ". Ages are calendar days in " + p.zone.String() + ". Assets are never added to each other."
}

// with is the report's address with some of it changed; "" takes a name out.
func (p *report) with(path string, pairs ...string) string {
	v := url.Values{}
	for k, x := range p.values {
		v[k] = x
	}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			v.Del(pairs[i])
		} else {
			v.Set(pairs[i], pairs[i+1])
		}
	}
	if len(v) == 1 && v.Has("zone") {
		v.Del("zone")
	}
	return address(path, v)
}

// form is the part of the filter form that every report has.
func (p *report) form(path string) views.MoneyFilter {
	f := views.MoneyFilter{Action: path, Problem: p.problem, Hidden: []views.Option{{Value: "zone", Label: p.zone.String()}}}
	f.Inputs = []views.Input{
		{Label: "Opened from (" + p.zone.String() + ")", Name: "from", Value: p.values.Get("from"), Type: "date"},
		{Label: "Opened to, included", Name: "to", Value: p.values.Get("to"), Type: "date"},
	}
	f.Selects = []views.Selector{{Label: "Age in days", Name: "age", Options: options(p.bucket, "", "Any", "0-1", "0-1", "2-7", "2-7", "8-30", "8-30", "31-60", "31-60", "61", "61 and more")}}
	for _, name := range []string{"age", "from", "to", "as_of"} {
		if s := p.values.Get(name); s != "" {
			f.Active = append(f.Active, strings.ReplaceAll(name, "_", " ")+" "+cutText(s, nameShown))
		}
	}
	return f
}

// options are a choice from values and labels, one after the other.
func options(picked string, list ...string) (out []views.Option) {
	for i := 0; i < len(list); i += 2 {
		out = append(out, views.Option{Value: list[i], Label: list[i+1], Picked: list[i] == picked})
	}
	return out
}

func head(names ...string) (list []views.Cell) {
	for _, n := range names {
		c := views.Cell{Text: line(strings.TrimPrefix(n, ">")), Num: strings.HasPrefix(n, ">")}
		list = append(list, c)
	}
	return list
}
