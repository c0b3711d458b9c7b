// Package rules holds tests of the repository itself: which folder may import which,
// where SQL may stand, and what no file may mention. It has no code of its own.
package rules
