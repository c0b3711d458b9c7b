package seal

import "context"

// Turn is one second of a server.
func Turn(s *Sealer, ctx context.Context) { s.turn(ctx) }
