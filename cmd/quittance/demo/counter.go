package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// policyBank is where the policies here say that the bank is asked. A stage writes an
// address in its place that is free on this machine.
const policyBank = "127.0.0.1:8090"

// counter holds the address that the policy names while no bank is there: a part takes
// it for its bank, and gives it back at its end.
type counter chan string

// freeAddress finds an address that a bank can be opened at later. Its port is below
// those that systems give to whoever asks for any, so that nobody gets it meanwhile.
func freeAddress() (string, error) {
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000)))
		if err == nil {
			return l.Addr().String(), l.Close()
		}
	}
	return "", errors.New("couldn't find a free port for the bank")
}

// takeCounter has the part's bank opened where the server asks it. It waits for a part
// that is played at the same time.
func (sc *scene) takeCounter(ctx context.Context) error {
	select {
	case sc.at = <-sc.counter:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leaveCounter gives the address back, once the part's bank is gone.
func (sc *scene) leaveCounter() {
	if sc.at != "" {
		sc.counter <- sc.at
	}
}
