package desk

import (
	"net/url"
	"regexp"
	"strings"
	"time"

	"quittance/ledger/money"
	"quittance/ledger/queue"
	"quittance/reconcile/access"
	"quittance/reconcile/effects"
	"quittance/views"
)

// filter is the queue's filter as the address carries it. The search box takes the
// same in words: tool:send_payment amount:>1000.
type filter struct {
	text                              string // the search box as typed
	words                             string // what is left of it without name:value
	tool, agent, run, key, state, age string
	currency, least, most, closed     string
	from, to                          string // days in zone
	zone                              *time.Location
	cursor                            string
}

var filterNames = []string{"q", "tool", "agent", "run", "key", "state", "age", "currency", "least", "most", "closed", "from", "to"}

func parseFilter(v url.Values, zone *time.Location) filter {
	get := func(name string) string { return queryText(v, name) }
	f := filter{
		text: get("q"), tool: get("tool"), agent: get("agent"), run: get("run"), key: get("key"), state: get("state"), age: get("age"),
		currency: strings.ToUpper(get("currency")), least: get("least"), most: get("most"), closed: get("closed"),
		from: get("from"), to: get("to"), zone: zone, cursor: get("cursor"),
	}
	// The address names the zone its days are of, so that a colleague elsewhere sees the
	// same rows.
	if z, ok := access.Zone(get("zone")); ok {
		f.zone = z
	}
	f.fromText()
	return f
}

// queryText is a word of the address as the database can take it.
func queryText(v url.Values, name string) string {
	return strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(v.Get(name), "\x00", ""), ""))
}

// queryText is [queryText] of the request's own address, as the form of an act has its Text.
func (r *request) queryText(name string) string { return queryText(r.QueryParams(), name) }

// fromText takes name:value out of the search box.
func (f *filter) fromText() {
	var rest []string
	for _, w := range strings.Fields(f.text) {
		before, value, ok := strings.Cut(w, ":")
		into := map[string]*string{
			"tool": &f.tool, "agent": &f.agent, "run": &f.run, "key": &f.key, "state": &f.state, "age": &f.age,
			"currency": &f.currency, "closed": &f.closed, "is": &f.state,
		}[before]
		switch {
		case ok && value != "" && before == "amount":
			switch {
			case strings.HasPrefix(value, ">"):
				f.least = strings.TrimLeft(value, ">=")
			case strings.HasPrefix(value, "<"):
				f.most = strings.TrimLeft(value, "<=")
			default:
				f.least, f.most = value, value
			}
		case ok && value != "" && into != nil:
			*into = strings.TrimLeft(value, ">=")
		default:
			rest = append(rest, w)
		}
	}
	f.words = strings.Join(rest, " ")
	f.currency = strings.ToUpper(f.currency)
}

// empty tells whether nothing is filtered.
func (f filter) empty() bool {
	return f.words == "" && f.tool == "" && f.agent == "" && f.run == "" && f.key == "" && f.state == "" && f.age == "" &&
		f.currency == "" && f.least == "" && f.most == "" && f.closed == ""
}

// values is the filter as an address again, without the page.
func (f filter) values() url.Values {
	v := url.Values{}
	for i, value := range []string{f.text, f.tool, f.agent, f.run, f.key, f.state, f.age, f.currency, f.least, f.most, f.closed, f.from, f.to} {
		if value != "" {
			v.Set(filterNames[i], value)
		}
	}
	if f.from != "" || f.to != "" {
		v.Set("zone", f.zone.String())
	}
	return v
}

func address(path string, v url.Values) string {
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

func (f filter) pager(next string) views.Pager {
	var p views.Pager
	if f.cursor != "" {
		p.First = address("/", f.values())
	}
	if next != "" {
		v := f.values()
		v.Set("cursor", next)
		p.Next = address("/", v)
	}
	return p
}

var ages = []struct {
	value, label string
	d            time.Duration
}{
	{"15m", "15 minutes", 15 * time.Minute}, {"1h", "1 hour", time.Hour}, {"4h", "4 hours", 4 * time.Hour},
	{"1d", "1 day", 24 * time.Hour}, {"7d", "7 days", 7 * 24 * time.Hour},
}

// query is the filter as the engine reads it; problem says what cannot be read.
func (d *Desk) query(r *request, f filter) (q effects.QueueQuery, problem string) {
	q = effects.QueueQuery{
		Words: f.words, Tool: f.tool, Agent: f.agent, RunID: f.run, BusinessKey: f.key, State: f.state, Currency: f.currency,
		Cursor: f.cursor, Limit: pageRows,
	}
	if f.state == "overdue" {
		q.State, q.Overdue = "", true
	}
	for _, a := range ages {
		if a.value == f.age {
			q.Older = a.d
		}
	}
	if f.age != "" && q.Older == 0 {
		age, err := time.ParseDuration(f.age)
		if err != nil || age <= 0 {
			return q, "The age is one of 15m, 1h, 4h, 1d and 7d, or written like 90m."
		}
		q.Older = age
	}
	if f.least == "" && f.most == "" {
		return q, ""
	}
	if f.currency == "" {
		f.currency = d.onlyCurrency(r)
	}
	if f.currency == "" {
		return q, "Choose the currency that the amount is of: amounts of different currencies are never compared."
	}
	asset, err := d.asset(r, f.currency)
	if err != nil {
		return q, "Nothing waits in " + f.currency + ", and it is no ISO currency: how many decimals it has is not known."
	}
	q.Currency = asset.Code
	for text, into := range map[string]*string{f.least: &q.Least, f.most: &q.Most} {
		if text == "" {
			continue
		}
		a, err := money.ParseDecimal(ungrouped(text), asset)
		if err != nil {
			return q, "The amount cannot be read: " + err.Error() + "."
		}
		*into = a.Atomic().String()
	}
	if f.least != "" && f.least == f.most {
		q.Most = q.Least
	}
	return q, ""
}

var inGroups = regexp.MustCompile(`^[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?$`)

// ungrouped takes the commas out of an amount that is copied from a page, 1,000.50. Others
// stay and are refused: 1,5 is one and a half to whoever types it, and not fifteen.
func ungrouped(text string) string {
	if inGroups.MatchString(text) {
		return strings.ReplaceAll(text, ",", "")
	}
	return text
}

// onlyCurrency is the one currency that anything waits in, "" when there are several.
func (d *Desk) onlyCurrency(r *request) (only string) {
	totals, err := queue.Totals(r.ctx(), d.db)
	if err != nil {
		return ""
	}
	for _, t := range totals {
		if t.Currency == "" {
			continue
		}
		if only != "" {
			return ""
		}
		only = t.Currency
	}
	return only
}

func (d *Desk) asset(r *request, code string) (money.Asset, error) {
	asset, err := money.Currency(code)
	if err == nil {
		return asset, nil
	}
	totals, dbErr := queue.Totals(r.ctx(), d.db)
	if dbErr != nil {
		return asset, dbErr
	}
	for _, t := range totals {
		if strings.EqualFold(t.Currency, code) {
			return money.NewAsset(t.Currency, t.Decimals)
		}
	}
	return asset, err
}

// view is the form as it was sent.
func (f filter) view(r *request, names queue.Names) views.Filter {
	pick := func(value string, list ...string) (options []views.Option) {
		for i := 0; i < len(list); i += 2 {
			options = append(options, views.Option{Value: list[i], Label: list[i+1], Picked: list[i] == value})
		}
		return options
	}
	v := views.Filter{
		Text: f.text, Tool: f.tool, Tools: names.Tools, Agent: f.agent, Agents: names.Agents, Run: f.run, Key: f.key,
		Least: f.least, Most: f.most, From: f.from, To: f.to, Zone: f.zone.String(), ClearURL: "/",
		State: pick(f.state, "", "Any", "interrupted", "Not known", "held", "Held, not started", "contradicted", "Contradiction",
			"second", "Waits for a second person", "confirm", "To confirm", "overdue", "Overdue"),
		Closed: pick(f.closed, "", "Not closed: the queue", "any", "Anyone but the agent", "person", "A person", "look_up", "A look-up", "late_agent", "A late agent",
			"vendor_key", "The vendor's key", "run_closed", "Closing the run", "agent", "The agent itself"),
		Currency: pick(f.currency, "", "Any"),
		Age:      pick(f.age, "", "Any time"),
	}
	for _, c := range names.Currencies {
		v.Currency = append(v.Currency, views.Option{Value: c, Label: c, Picked: c == f.currency})
	}
	for _, a := range ages {
		v.Age = append(v.Age, views.Option{Value: a.value, Label: a.label, Picked: a.value == f.age})
	}
	for _, x := range []struct{ label, value string }{
		{"", f.words}, {"tool ", f.tool}, {"agent ", f.agent}, {"run ", f.run}, {"key ", f.key}, {"", labelOf(v.State, f.state)},
		{"waiting ", labelOf(v.Age, f.age)}, {"in ", f.currency}, {"from ", f.least}, {"to ", f.most}, {"closed by: ", labelOf(v.Closed, f.closed)},
		{"since ", f.from}, {"until ", f.to},
	} {
		if x.value != "" {
			v.Active = append(v.Active, x.label+cutText(x.value, nameShown))
		}
	}
	v.Open = r.QueryParam("filters") != ""
	return v
}

func labelOf(options []views.Option, value string) string {
	if value == "" {
		return ""
	}
	for _, o := range options {
		if o.Value == value {
			return o.Label
		}
	}
	return value
}

func cutText(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

// views are the ready-made filters with what each holds.
func (f filter) views(s effects.QueueSums) []views.NavItem {
	item := func(label, state string, n int) views.NavItem {
		v := url.Values{}
		if state != "" {
			v.Set("state", state)
		}
		here := f.state == state && f.closed == "" && (state != "" || f.empty())
		return views.NavItem{Label: label, URL: address("/", v), Count: capped(n, queue.CountCap), Here: here}
	}
	list := []views.NavItem{
		item("All", "", 0), item("Contradictions", "contradicted", s.Views.Contradicted), item("Second person", "second", s.Views.Second),
		item("To confirm", "confirm", s.Views.Confirm), item("Held", "held", s.Views.Held), item("Overdue", "overdue", s.Overdue),
	}
	return append(list, views.NavItem{Label: "Closed by a person", URL: "/?closed=person", Here: f.closed == "person"})
}

// days are the bounds of the closed list: whole days in the address's zone.
func (f *filter) days() (from, to time.Time, problem string) {
	var err error
	if f.from != "" {
		if from, err = time.ParseInLocation(time.DateOnly, f.from, f.zone); err != nil {
			return from, to, "A day is written like 2026-05-14."
		}
	}
	if f.to != "" {
		if to, err = time.ParseInLocation(time.DateOnly, f.to, f.zone); err != nil {
			return from, to, "A day is written like 2026-05-16."
		}
		to = to.AddDate(0, 0, 1)
	}
	return from, to, ""
}
