package metrics

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/ledger"
	"quittance/ledger/payments"
)

// waiting tells of payments that are not over, and of those that nobody can find out about.
type waiting struct {
	db  *ledger.DB
	log *slog.Logger
}

var (
	open = prometheus.NewDesc("quittance_payments_open",
		"Payments that are in flight, or of which nobody knows yet what became. asked=no: unknown, and its rail has not been asked when it was due; a person has to look.",
		[]string{"network", "state", "asked"}, nil)
	alerts  = prometheus.NewDesc("quittance_payments_alerts_open", "Payments with an alert that nobody has said they saw.", nil, nil)
	notPaid = prometheus.NewDesc("quittance_payments_settled_not_paid", "Payments that their gateway settled, and whose order is not paid.", nil, nil)
	oldest  = prometheus.NewDesc("quittance_payments_open_oldest_seconds", "How old the oldest of them is.", []string{"network", "state", "asked"}, nil)
)

func (w *waiting) Describe(ch chan<- *prometheus.Desc) {
	ch <- open
	ch <- oldest
	ch <- alerts
	ch <- notPaid
}

func (w *waiting) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	list, err := payments.OpenCounts(ctx, w.db)
	if err != nil {
		w.log.Error("open payments could not be counted for the metrics", "error", err)
		ch <- prometheus.NewInvalidMetric(open, errors.New("the database cannot be read"))
		return
	}
	raised, unpaid, err := payments.AlertCount(ctx, w.db)
	if err != nil {
		w.log.Error("alerts could not be counted for the metrics", "error", err)
		ch <- prometheus.NewInvalidMetric(alerts, errors.New("the database cannot be read"))
		return
	}
	ch <- prometheus.MustNewConstMetric(alerts, prometheus.GaugeValue, float64(raised))
	ch <- prometheus.MustNewConstMetric(notPaid, prometheus.GaugeValue, float64(unpaid))
	for _, l := range list {
		asked := "yes"
		if l.Unasked {
			asked = "no"
		}
		ch <- prometheus.MustNewConstMetric(open, prometheus.GaugeValue, float64(l.Count), l.Network, l.State, asked)
		ch <- prometheus.MustNewConstMetric(oldest, prometheus.GaugeValue, l.Oldest, l.Network, l.State, asked)
	}
}
