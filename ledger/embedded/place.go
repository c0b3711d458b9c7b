package embedded

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// Place is a mark of where the database lives: this machine and this very folder. It
// stays the same through restarts and upgrades, and differs in a copy made by a
// backup, on another machine or on this one. Machines without an id, as most
// containers are, are told apart by the folder alone.
func (in *Instance) Place() string {
	h := sha256.New()
	machine, _ := os.ReadFile("/etc/machine-id") // is to be kept confidential, hence the hash
	fmt.Fprintf(h, "%s\n", strings.TrimSpace(string(machine)))
	if st, err := os.Stat(in.folder.cluster()); err == nil {
		// Not the device: its number may change with a reboot.
		if s, ok := st.Sys().(*syscall.Stat_t); ok {
			fmt.Fprintf(h, "%d\n", s.Ino)
		}
	}
	return fmt.Sprintf("embedded-%x", h.Sum(nil)[:6])
}
