//go:build torture

package guards

import "os"

var off = Guard(os.Getenv(Variable))

// Off tells whether a guard is switched off.
func Off(g Guard) bool { return g == off }
