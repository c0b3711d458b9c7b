package conformance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"quittance/internal/typescript"
	"quittance/reconcile/access"
)

// TestTypeScript runs the TypeScript client's own tests against a real server.
func TestTypeScript(t *testing.T) {
	t.Parallel()
	compiled, err := typescript.Client()
	must(t, err)
	files, err := filepath.Glob(filepath.Join(compiled, "test", "*.test.js"))
	must(t, err)
	if len(files) == 0 {
		t.Fatalf("there are no tests in %s", compiled)
	}
	w := newWorld(t)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			// Not by --test: that runs a file in a process of its own, out of reach.
			cmd := exec.Command("node", "--test-reporter=spec", file)
			cmd.Env = append(os.Environ(), "QUITTANCE_URL="+w.url, "QUITTANCE_TOKEN="+w.account(t, "typescript/"+filepath.Base(file)),
				"QUITTANCE_PERSON_TOKEN="+w.person(t), "XDG_CACHE_HOME="+t.TempDir())
			stop := time.AfterFunc(4*time.Minute, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
			defer stop.Stop()
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestTypeScriptOfTheGuides compiles what the guides show, each example by itself.
func TestTypeScriptOfTheGuides(t *testing.T) {
	t.Parallel()
	dir, err := typescript.Package()
	must(t, err)
	shown := 0
	at, err := os.MkdirTemp(dir, ".guides-") // where the client is found by its name
	must(t, err)
	defer os.RemoveAll(at)
	for _, guide := range []string{"../../docs/agents.md", "../../docs/gateways.md", "../typescript/README.md"} {
		text, err := os.ReadFile(guide)
		must(t, err)
		for _, block := range strings.Split(string(text), "\n```ts\n")[1:] {
			code, _, _ := strings.Cut(block, "\n```")
			shown++
			must(t, os.WriteFile(filepath.Join(at, fmt.Sprintf("%d.ts", shown)), []byte(code+"\nexport {};\n"), 0o600))
		}
	}
	if shown < 6 {
		t.Errorf("only %d examples were found", shown)
	}
	config := `{"extends": "../tsconfig.json", "compilerOptions": {"incremental": false, "noEmit": true, "noUnusedLocals": false, "noUnusedParameters": false}, "include": ["*.ts", "../test/guides.d.ts"]}`
	must(t, os.WriteFile(filepath.Join(at, "tsconfig.json"), []byte(config), 0o600))
	if out, err := exec.Command(filepath.Join(dir, "node_modules", ".bin", "tsc"), "-p", at).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// person makes a token of a person who decides.
func (w *world) person(t *testing.T) string {
	t.Helper()
	id, err := w.access.AddPerson(t.Context(), "Tess "+t.Name(), "", []string{"operator"})
	must(t, err)
	token := access.NewToken(access.PersonPrefix)
	must(t, w.access.AddPersonToken(t.Context(), id, "test", token, 0))
	return token
}
