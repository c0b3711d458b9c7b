package crash

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"quittance/cmd/torture/payer"
)

// program is the built quittance.
var program string

// atOnce is how many tests run side by side: they wait far more than they compute.
const atOnce = "24"

func TestMain(m *testing.M) {
	if text := os.Getenv(jobVariable); text != "" {
		os.Exit(payer.Main(text))
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "quittance-crash-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "quittance")
	if out, err := exec.Command("go", "build", "-o", program, "quittance/cmd/quittance").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "couldn't build the program: %v\n%s", err, out)
		return 1
	}
	stop, err := startGuard()
	if err != nil {
		fmt.Fprintf(os.Stderr, "couldn't start the guard: %v\n", err)
		return 1
	}
	defer stop()
	return m.Run()
}
