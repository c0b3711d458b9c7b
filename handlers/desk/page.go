package desk

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"quittance/ledger/desk"
	"quittance/ledger/payments"
	"quittance/ledger/queue"
	"quittance/reconcile/policy"
	"quittance/views"
	"quittance/web"
)

// nowhereZone is what times are shown in to somebody who is not signed in.
var nowhereZone = time.UTC

// loopLate is when the loops count as stuck: they run each second.
const loopLate = 10 * time.Second

// page is what stands around the content: who is signed in, what waits, and whether
// the machine behind it lives.
func (d *Desk) page(r *request, title, here string) (views.Page, error) {
	p := views.Page{Title: title, Assets: web.Assets(), Zone: r.zone.String(), Notice: r.notice()}
	if r.session == nil {
		return p, nil
	}
	p.Person, p.Roles = r.session.Person.Name, strings.Join(r.session.Person.Roles, ", ")
	if p.Roles == "" {
		p.Roles = "no role yet"
	}
	p.Token = r.session.FormToken()
	if !r.may(reader) {
		return p, nil
	}
	totals, err := queue.Totals(r.ctx(), d.db)
	if err != nil {
		return p, err
	}
	var waiting int64
	for _, t := range totals {
		waiting += t.Effects
	}
	decided, err := desk.CountUnused(r.ctx(), d.db, 100)
	if err != nil {
		return p, err
	}
	p.Nav = []views.NavItem{
		{Label: "Queue", URL: "/", Icon: "queue", Count: count(waiting)},
		{Label: "Decided", URL: "/decided", Icon: "decided", Count: capped(decided, 100)},
		{Label: "Runs", URL: "/runs", Icon: "runs"},
		{Label: "Tools", URL: "/tools", Icon: "tools"},
	}
	if slices.ContainsFunc(d.engine.Policy().Tools(), (*policy.Tool).Observe) {
		p.Nav = append(p.Nav, views.NavItem{Label: "Observed", URL: "/observe", Icon: "search"})
	}
	if d.refund != nil && (r.may(finance) || len(d.engine.Policy().Rails()) > 0) {
		look, err := payments.LookCount(r.ctx(), d.db, 100)
		if err != nil {
			return p, err
		}
		p.Nav = append(p.Nav, views.NavItem{Label: "Payments", URL: "/payments", Icon: "payments", Count: capped(look, 100)},
			views.NavItem{Label: "Refunds", URL: "/refunds", Icon: "refunds"}, views.NavItem{Label: "Recoveries", URL: "/recoveries", Icon: "recoveries"},
			views.NavItem{Label: "Money", URL: "/money", Icon: "money"})
	}
	if len(d.engine.Policy().Webhooks()) > 0 {
		p.Nav = append(p.Nav, views.NavItem{Label: "Deliveries", URL: "/deliveries", Icon: "runs"})
	}
	if r.may(auditor) {
		p.Nav = append(p.Nav, views.NavItem{Label: "Audit", URL: "/audit", Icon: "audit"}, views.NavItem{Label: "People", URL: "/people", Icon: "people"})
	}
	for i := range p.Nav {
		p.Nav[i].Here = p.Nav[i].URL == here
	}
	p.Loops, p.Quiet = d.lastRan(d.engine.LastLoop(), loopLate)
	if d.pay != nil && p.Quiet { // the foot of a page tells of the worst
		if ran, ok := d.lastRan(d.pay.LastLoop(), loopLate); !ok {
			p.Loops, p.Quiet = ran, false
		}
	}
	gap, err := d.engine.Gap(r.ctx())
	if err != nil {
		return p, err
	}
	if gap != nil {
		p.Gap = "This database may have lost events (found " + r.at(gap.FoundAt).Text + "). "
		if gap.AcknowledgedAt.IsZero() {
			p.Gap += "Nothing is released until an admin acknowledges it under Health."
		} else {
			p.Gap += "New effects start as interrupted until an admin ends the gap under Health."
		}
	}
	copied, err := d.engine.Copy(r.ctx())
	if err != nil {
		return p, err
	}
	if copied != nil {
		p.Gap = strings.TrimSpace(p.Gap + " " + copyText(*copied) + " An admin decides under Health whether it belongs here.")
	}
	alarms, err := d.alarms(r)
	if err != nil {
		return p, err
	}
	p.Gap = strings.TrimSpace(p.Gap + " " + alarms)
	return p, nil
}

// count is a number with its thousands apart, "" for none.
func count(n int64) string {
	if n == 0 {
		return ""
	}
	return grouped(n)
}

func grouped(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// capped is a count that stopped at a limit.
func capped(n, limit int) string {
	if n >= limit {
		return grouped(int64(limit)) + "+"
	}
	return count(int64(n))
}

// notices are what a page says after a redirect: the address carries only the word, so
// that nobody can be sent a link that says something of their own.
var notices = map[string]views.Notice{
	"sent-back":    {Kind: "ok", Text: "Sent back. The effect waits for a new verdict."},
	"undone":       {Kind: "ok", Text: "Taken back. Nothing had been used."},
	"acknowledged": {Kind: "ok", Text: "Acknowledged. The run may go on."},
	"noted":        {Kind: "ok", Text: "What you saw is kept. The effect stays in the queue."},
	"kept":         {Kind: "ok", Text: "The file is kept with this effect; its digest stands in the record."},
	"again":        {Kind: "warn", Text: "That form had been sent already. This is how things stand now; nothing was changed by sending it again."},
	"concurring":   {Kind: "ok", Text: "Somebody had given the same verdict already; yours is recorded beside it."},
	"confirmed":    {Kind: "ok", Text: "Confirmed. It is released now."},
	"waits":        {Kind: "warn", Text: "Recorded. It waits for a second person."},
	"welcome":      {Kind: "ok", Text: "You are signed in."},
	"asked":        {Kind: "ok", Text: "The downstream is being asked. What it says shows here."},
	"asking":       {Kind: "ok", Text: "The downstream is being asked already, or its turn comes in a moment: nobody is asked twice at once."},
	"changed":      {Kind: "ok", Text: "Changed."},
	"recorded":     {Kind: "ok", Text: "Recorded."},
	"shown":        {Kind: "ok", Text: "The network was asked, and shows it. Nothing is left to be decided."},
	"replayed":     {Kind: "ok", Text: "It is sent again now, under the same id."},
}

func (r *request) notice() *views.Notice {
	if r.Request().Method != http.MethodGet {
		return nil
	}
	n, ok := notices[r.QueryParam("done")]
	if !ok {
		return nil
	}
	return &n
}
