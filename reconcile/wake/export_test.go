package wake

import (
	"context"
	"time"

	"quittance/reconcile/lookup/outbound"
)

// Round is one round of the loop, and every answer to what it sent.
func (s *Service) Round(ctx context.Context) error {
	err := s.round(ctx)
	s.sends.Wait()
	return err
}

// Patience shortens how long an endpoint is waited for.
func (s *Service) Patience(d time.Duration) {
	for private := range s.clients {
		s.clients[private] = outbound.New(outbound.Options{AllowPrivate: private, Patience: d})
	}
}

// Steps are the pauses of the schedule.
var Steps = steps

// Sign is sign.
var Sign = sign
