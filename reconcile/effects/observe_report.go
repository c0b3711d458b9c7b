package effects

import (
	"context"
	"encoding/base64"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"quittance/ledger"
	store "quittance/ledger/effects"
	"quittance/ledger/money"
	"quittance/ledger/observed"
)

// ObserveQuery narrows what is told of observed calls; zero values filter nothing.
type ObserveQuery struct {
	Account, Tool string
	Since         time.Time
	Cursor        string // Next of the page before; of [Engine.ObservedCalls] only
	Limit         int    // 1 to 200; 0 means 50
}

// ObservedTool is what enforcing would have done with the calls of one tool.
type ObservedTool struct {
	Tool     string
	Observed bool // it still is
	Sums     []ObservedSum
}

// ObservedSum is how many calls one answer would have met, and the money in them.
// Amounts of different assets are never added.
type ObservedSum struct {
	// What is calls (all of them), replay, hold, unknown, pause, wait or refuse. Unknown
	// are those about which a person would have been asked, the others what a begin would
	// have been answered: one call may count in both.
	What     string
	Calls    int64
	Amounts  []money.Amount
	Unpriced int64 // calls without a readable amount
}

// whats are the lines of a report, in the order in which people read them.
var whats = []string{"calls", "replay", "hold", "unknown", "pause", "wait", "refuse"}

// Words says what was counted, for people.
func (s ObservedSum) Words() string {
	return map[string]string{
		"calls": "calls were made", "replay": "made again although the outcome was on record: the record would have been given instead",
		"hold":    "would have been held for a person: the business key of another call, or none",
		"unknown": "nobody knows what came of them: a person would have been asked",
		"pause":   "made again while nobody knew whether the first had happened: would have waited for the answer",
		"wait":    "would have waited for another call of the run", "refuse": "would have been turned away: another attempt was under way, or the run was lost or over",
	}[s.What]
}

// ObserveReport says, tool by tool, what enforcing would have done.
func (e *Engine) ObserveReport(ctx context.Context, q ObserveQuery) ([]ObservedTool, error) {
	list, err := ReportObserved(ctx, e.db, q)
	for i := range list {
		list[i].Observed = e.Policy().Tool(list[i].Tool).Observe()
	}
	return list, err
}

// ReportObserved is [Engine.ObserveReport] for who has a database and no engine: Observed
// is false of every tool, as only a policy knows.
func ReportObserved(ctx context.Context, r ledger.Reader, q ObserveQuery) (list []ObservedTool, err error) {
	rows, err := observed.Sums(ctx, r, observed.Filter{Account: q.Account, Tool: q.Tool, Since: q.Since})
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if len(list) == 0 || list[len(list)-1].Tool != r.Tool {
			t := ObservedTool{Tool: r.Tool}
			for _, what := range whats {
				t.Sums = append(t.Sums, ObservedSum{What: what})
			}
			list = append(list, t)
		}
		for i := range list[len(list)-1].Sums {
			s := &list[len(list)-1].Sums[i]
			if s.What == "calls" || s.What == string(r.Would) || s.What == "unknown" && r.Unknown {
				s.add(r)
			}
		}
	}
	return list, nil
}

func (s *ObservedSum) add(r observed.Sum) {
	s.Calls += r.Calls
	asset, err := money.NewAsset(r.Currency, r.Decimals)
	n, ok := new(big.Int).SetString(r.Amount, 10)
	if r.Currency == "" || err != nil || !ok {
		s.Unpriced += r.Calls
		return
	}
	a, err := money.FromMinor(n, asset)
	if err != nil { // more digits than an amount may have: a sum that nobody would read
		s.Unpriced += r.Calls
		return
	}
	for i, have := range s.Amounts {
		if have.Asset() == asset {
			if sum, err := have.Add(a); err == nil {
				s.Amounts[i] = sum
				return
			}
		}
	}
	s.Amounts = append(s.Amounts, a)
}

// ObservedCall is a call that enforcing would have stopped, or asked a person about.
type ObservedCall struct {
	ID, RunID, Account, Agent, Tool string
	Summary, BusinessKey            string
	Amount                          *money.Amount
	AmountProblem                   string
	Attempt                         int
	BegunAt                         time.Time
	Would, Why                      string
	MetCall, MetEffect              string // because of which one; "" where there is none
	Outcome                         string // "" where its agent never said
	Unknown                         bool
	Reference                       string
}

// ObservedCalls lists them, latest first. next is "" on the last page.
func (e *Engine) ObservedCalls(ctx context.Context, q ObserveQuery) (list []ObservedCall, next string, err error) {
	if q.Limit == 0 {
		q.Limit = 50
	}
	if q.Limit < 1 || q.Limit > 200 {
		return nil, "", invalid("/limit", "A page holds 1 to 200 calls.")
	}
	after, refusal := observedPlace(q.Cursor)
	if refusal != nil {
		return nil, "", refusal
	}
	rows, err := observed.Stopped(ctx, e.db, observed.Filter{Account: q.Account, Tool: q.Tool, Since: q.Since}, after, q.Limit+1)
	if err != nil {
		return nil, "", err
	}
	if len(rows) > q.Limit {
		rows = rows[:q.Limit]
		last := rows[len(rows)-1]
		next = base64.RawURLEncoding.EncodeToString([]byte(last.BegunAt.UTC().Format(time.RFC3339Nano) + " " + last.ID))
	}
	for _, r := range rows {
		list = append(list, ObservedCall{
			ID: r.ID, RunID: r.RunName, Account: r.AccountName, Agent: r.Agent, Tool: r.Tool, Summary: r.Summary, BusinessKey: r.BusinessKey,
			Amount: observedMoney(r.Call), AmountProblem: r.AmountProblem, Attempt: r.Attempt, BegunAt: r.BegunAt.Time,
			Would: string(r.Would), Why: r.Why, MetCall: r.MetCall, MetEffect: r.MetEffect, Outcome: r.Outcome, Unknown: r.Unknown, Reference: r.Reference,
		})
	}
	return list, next, nil
}

func observedPlace(cursor string) (*observed.Place, *Refusal) {
	if cursor == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	when, id, _ := strings.Cut(string(b), " ")
	at, err1 := time.Parse(time.RFC3339Nano, when)
	key, err2 := uuid.Parse(id)
	if slices.ContainsFunc([]error{err, err1, err2}, func(err error) bool { return err != nil }) {
		return nil, invalid("/cursor", "It is no next_cursor of this list.")
	}
	return &observed.Place{BegunAt: at, ID: key.String()}, nil
}

func observedMoney(c observed.Call) *money.Amount {
	a, _ := moneyOf(&store.Row{Intent: store.Intent{Amount: c.Amount, Currency: c.Currency, Decimals: c.Decimals}})
	return a
}
