package embedded

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// Program finds one of PostgreSQL's client programs for a server of a major version: the
// one of that version where it is installed, else the oldest that is newer. An older one
// would misread the server.
func Program(name string, major int) (string, error) {
	var candidates []string
	for _, p := range places {
		found, _ := filepath.Glob(filepath.Join(p, name))
		candidates = append(candidates, found...)
	}
	if p, err := exec.LookPath(name); err == nil {
		candidates = append(candidates, p)
	}
	best, bestMajor := "", 0
	for _, c := range candidates {
		if v, err := majorOf(c); err == nil && v >= major && (best == "" || v < bestMajor) {
			best, bestMajor = c, v
		}
	}
	if best == "" {
		return "", fmt.Errorf("%w: %s of version %d or newer is needed: install postgresql-client-%d", ErrNoPostgres, name, major, major)
	}
	return best, nil
}
