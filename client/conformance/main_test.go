package conformance

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"quittance/internal/typescript"
)

// runnerVariable turns the test binary into the runner for Go.
const runnerVariable = "QUITTANCE_TEST_CONFORMANCE_RUNNER"

// atOnce is how many scenarios run side by side: most of them wait for a lease or a
// deadline to end.
const atOnce = "12"

func TestMain(m *testing.M) {
	if os.Getenv(runnerVariable) != "" {
		os.Exit(runnerMain(os.Stdin, os.Stdout))
	}
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// languages are the runners, each a command line.
func languages(t testing.TB) map[string][]string {
	t.Helper()
	compiled, err := typescript.Client()
	must(t, err)
	return map[string][]string{
		"go":           {os.Args[0]},
		"python":       {"python3", "../python/conformance/runner.py"},
		"python-async": {"python3", "../python/conformance/runner.py", "async"},
		"typescript":   {"node", filepath.Join(compiled, "test", "runner.js")},
	}
}
