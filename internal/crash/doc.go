// Package crash holds tests alone: real processes are killed with SIGKILL, stopped
// and cut off, at named points and never after a guess of time, and the bank's own
// ledger says what came of it.
//
// The server and the bank are the program as it is built; the agent is this test
// binary with the client that agents use.
package crash
