// Package metrics answers Prometheus at /metrics. The figures tell how much money moves, so
// that they are for people of the installation only: the bearer token of any person with a
// role, such as a viewer made for the scraper.
package metrics

import (
	"context"
	"errors"
	"log/slog"
	"math/big"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"quittance/ledger"
	"quittance/ledger/books"
	"quittance/ledger/money"
	"quittance/reconcile/access"
	"quittance/web"
)

// Options are what the endpoint has to be told.
type Options struct {
	DB     *ledger.DB
	Access *access.Service
	Log    *slog.Logger
	// Loops tell when each loop of this server last finished a round.
	Loops map[string]func() time.Time
}

// Register puts /metrics on e.
func Register(e *echo.Echo, o Options) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &equation{db: o.DB, log: o.Log}, &waiting{db: o.DB, log: o.Log})
	for name, last := range o.Loops {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "quittance_loop_last_timestamp_seconds", Help: "When a loop of this server last finished a round; 0 before the first.", ConstLabels: prometheus.Labels{"loop": name},
		}, func() float64 { return float64(last().UnixMilli()) / 1000 }))
	}
	answer := promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
	e.GET("/metrics", func(c echo.Context) error {
		who, err := o.Access.Authenticate(c.Request().Context(), web.Bearer(c))
		switch {
		case errors.Is(err, access.ErrUnknown):
			c.Response().Header().Set("WWW-Authenticate", "Bearer")
			return &web.Problem{Status: http.StatusUnauthorized, Code: "unauthorized", Detail: "Send the header Authorization: Bearer with a person's token."}
		case err != nil:
			return err
		case !who.Person.Is(access.Roles...):
			return &web.Problem{Status: http.StatusForbidden, Code: "forbidden", Detail: "The figures are for people with a role."}
		}
		answer.ServeHTTP(c.Response(), c.Request())
		return nil
	}, web.Timeout(web.DefaultTimeout))
}

// fresh is how long an answer about the equation is used again: it is added up over all
// that ever came in.
const fresh = time.Minute

// equation tells of each asset of each rail where its money stands.
type equation struct {
	db  *ledger.DB
	log *slog.Logger

	mu    sync.Mutex
	lines []books.Line
	at    time.Time
}

var (
	stands = prometheus.NewDesc("quittance_money_atomic",
		"Where the money of an asset of a rail stands, in its smallest unit. Rounded to a float; exact on /money.", []string{"network", "asset", "place"}, nil)
	difference = prometheus.NewDesc("quittance_money_difference_atomic",
		"What was received and stands nowhere. Anything but 0 is an alarm.", []string{"network", "asset"}, nil)
	holds = prometheus.NewDesc("quittance_money_equation_holds",
		"1 where the tables and the double entries agree to the last unit, 0 where they do not.", []string{"network", "asset"}, nil)
	checked = prometheus.NewDesc("quittance_money_equation_checked_timestamp_seconds", "When the equation was last added up.", nil, nil)
)

func (e *equation) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{stands, difference, holds, checked} {
		ch <- d
	}
}

func (e *equation) Collect(ch chan<- prometheus.Metric) {
	lines, at, err := e.read()
	if err != nil {
		e.log.Error("the equation could not be read for the metrics", "error", err)
		ch <- prometheus.NewInvalidMetric(holds, errors.New("the database cannot be read"))
		return
	}
	ch <- prometheus.MustNewConstMetric(checked, prometheus.GaugeValue, float64(at.UnixMilli())/1000)
	for _, l := range lines {
		tell := func(d *prometheus.Desc, x money.Atomic, labels ...string) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, rounded(x), append([]string{l.Network, l.Asset}, labels...)...)
		}
		for place, x := range map[string]money.Atomic{
			"received": l.Received, "reverted": l.Reverted, "applied": l.Applied, "owed": l.Owed, "refunded": l.Refunded, "written_off": l.WrittenOff, "held": l.Held, "unmatched": l.Unmatched,
		} {
			tell(stands, x, place)
		}
		tell(difference, l.Difference)
		ok := 0.0
		if l.Holds() {
			ok = 1
		}
		ch <- prometheus.MustNewConstMetric(holds, prometheus.GaugeValue, ok, l.Network, l.Asset)
	}
}

// rounded is an amount as Prometheus can hold it. It is for graphs; whether it is 0 is
// exact.
func rounded(x money.Atomic) float64 {
	n, _ := new(big.Float).SetString(x.String())
	f, _ := n.Float64()
	return f
}

func (e *equation) read() ([]books.Line, time.Time, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if time.Since(e.at) < fresh {
		return e.lines, e.at, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	lines, err := books.Equation(ctx, e.db)
	if err != nil {
		return nil, time.Time{}, err
	}
	e.lines, e.at = lines, time.Now()
	return e.lines, e.at, nil
}
