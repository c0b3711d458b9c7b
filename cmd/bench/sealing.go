package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"quittance/reconcile/seal"
)

// slice is how long the sealer is on, or off, before it is the other's turn: slow moments
// of the machine meet both.
const slice = 2 * time.Second

// sealing measures closed-loop agents with and without a sealer beside them, in slices
// that alternate. What is written while it is off is sealed between the slices, so that a
// slice pays for its own rows.
func (b *bench) sealing(ctx context.Context, n int, length time.Duration) error {
	s := seal.New(b.db, seal.NewAnchor(b.anchor), func() {}, slog.Default())
	if err := s.Arrive(ctx); err != nil {
		return err
	}
	var times [2][]time.Duration
	var processor [2]time.Duration
	var spans [2]time.Duration
	for i := 0; spans[1] < length; i++ {
		with := i % 2
		for more := true; more; {
			var err error
			if more, _, err = s.Seal(ctx); err != nil {
				return err
			}
		}
		running, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			if with == 1 {
				s.Run(running)
			}
		}()
		t, p, err := b.loop(ctx, n, slice, func() (func() error, error) { return b.effect(ctx) })
		stop()
		<-done
		if err != nil {
			return err
		}
		times[with] = append(times[with], t...)
		processor[with] += p
		spans[with] += slice
	}
	var rate, cost [2]float64
	for i, name := range []string{"off", "on"} {
		slices.Sort(times[i])
		rate[i] = float64(len(times[i])) / spans[i].Seconds()
		cost[i] = float64(processor[i].Microseconds()) / float64(len(times[i]))
		fmt.Printf("BenchmarkSealing/%s/agents=%d \t%d\t%d ns/op\t%.0f effects/s\t%.2f of-off\t%.0f cpu-us/op\t%.2f cpu-of-off\t%d p50-ns\t%d p99-ns\n", name, n, len(times[i]),
			spans[i].Nanoseconds()/int64(len(times[i])), rate[i], rate[i]/rate[0], cost[i], cost[i]/cost[0], median(times[i]).Nanoseconds(), times[i][len(times[i])*99/100].Nanoseconds())
	}
	return nil
}
