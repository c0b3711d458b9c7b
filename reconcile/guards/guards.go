// Package guards names the rules that the torture switches off, one at a time, to see
// whether its checker notices. Only a program built with the tag torture can switch one
// off; in every other the answer is a constant, and there is nothing to set.
package guards

// Guard is one rule.
type Guard string

// The guards of the server. Two more are switched off elsewhere: "intent first", in the
// client, and the uniqueness of references, in the database.
const (
	Fence        Guard = "fence"           // a finish speaks for the attempt whose fence it carries
	Lease        Guard = "lease"           // only the holder of the lease begins
	Overlap      Guard = "overlap"         // one effect at a time claims a business key
	LandsWithin  Guard = "lands_within"    // nothing is released while a request may still land
	ReleaseCheck Guard = "release_recheck" // the downstream is asked once more before a release
)

// Variable names the guard that is off, in a program that was built for it.
const Variable = "QUITTANCE_TORTURE_BREAK"
