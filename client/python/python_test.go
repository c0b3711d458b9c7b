package python

import (
	"os/exec"
	"strings"
	"testing"
)

// run runs a program in this folder. One that is missing is a failure.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Fatalf("%s is missing (`make setup` installs it): %v", name, err)
	}
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestUnits(t *testing.T) {
	t.Parallel()
	out := run(t, "python3", "-W", "error::ResourceWarning", "-m", "unittest", "discover", "-t", ".", "-s", "tests")
	if strings.Contains(out, "Ran 0 tests") || strings.Contains(out, "skipped") || strings.Contains(out, "ResourceWarning") {
		t.Errorf("no test ran, or one was skipped, or something was left open:\n%s", out)
	}
}

func TestTypes(t *testing.T) {
	t.Parallel()
	run(t, "mypy", "--strict", "--cache-dir", t.TempDir(), "quittance", "conformance/runner.py", "tests")
}

// TestOnlyTheStandardLibrary: the client is imported where nothing is installed.
func TestOnlyTheStandardLibrary(t *testing.T) {
	t.Parallel()
	run(t, "python3", "-I", "-S", "-c", `
import sys
sys.path.insert(0, ".")
import quittance, quittance.lookups, quittance.langchain, quittance.openai_agents
`)
}
