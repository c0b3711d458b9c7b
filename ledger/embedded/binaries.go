package embedded

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// installation is one set of PostgreSQL programs.
type installation struct {
	bin   string // folder that holds initdb and postgres
	major int
}

// places lists where packages put the programs. PATH comes after them, because
// Debian keeps the server programs out of it on purpose.
var places = []string{
	"/usr/lib/postgresql/*/bin",          // Debian, Ubuntu
	"/usr/pgsql-*/bin",                   // the PostgreSQL project's packages for Red Hat
	"/opt/homebrew/opt/postgresql@*/bin", // Homebrew on Apple silicon
	"/usr/local/opt/postgresql@*/bin",    // Homebrew on Intel
	"/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
}

// oldestMajor is the oldest version the migrations are tested with.
const oldestMajor = 14

// findInstallation returns the newest installed PostgreSQL, or the one of the major
// version that existing data needs (want 0 means any).
func findInstallation(want int) (installation, error) {
	all := installations()
	if len(all) == 0 {
		return installation{}, fmt.Errorf("%w: install it with `apt-get install postgresql` (Debian, Ubuntu) or `brew install postgresql@17` (macOS), or set DATABASE_URL", ErrNoPostgres)
	}
	if want == 0 {
		newest := all[0]
		if newest.major < oldestMajor {
			return installation{}, fmt.Errorf("%w: version %d or newer is needed, %s has %d", ErrNoPostgres, oldestMajor, newest.bin, newest.major)
		}
		return newest, nil
	}
	for _, in := range all {
		if in.major == want {
			return in, nil
		}
	}
	return installation{}, fmt.Errorf("%w: it was made by PostgreSQL %d, installed is %d; install postgresql-%d, or move the data as docs/operations.md says under \"Another PostgreSQL version\"",
		ErrVersion, want, all[0].major, want)
}

// installations lists what is installed, newest first.
func installations() []installation {
	var bins []string
	for _, p := range places {
		m, _ := filepath.Glob(p)
		bins = append(bins, m...)
	}
	if p, err := exec.LookPath("postgres"); err == nil {
		bins = append(bins, filepath.Dir(p))
	}
	var found []installation
	for _, bin := range bins {
		if _, err := os.Stat(filepath.Join(bin, "initdb")); err != nil {
			continue // a client-only package
		}
		if major, err := majorOf(filepath.Join(bin, "postgres")); err == nil {
			found = append(found, installation{bin: bin, major: major})
		}
	}
	slices.SortStableFunc(found, func(a, b installation) int { return b.major - a.major })
	return found
}

var majorPattern = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

func majorOf(postgres string) (int, error) {
	out, err := exec.Command(postgres, "--version").Output()
	if err != nil {
		return 0, fmt.Errorf("couldn't run %s: %w", postgres, err)
	}
	m := majorPattern.FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("couldn't read the version of %s", postgres)
	}
	return strconv.Atoi(string(m[1]))
}
