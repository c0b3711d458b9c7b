package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "quittance"

// layers says for each top folder which others its packages may import, tests aside.
// cmd may import all; a folder that is not listed may be imported by cmd alone.
var layers = map[string][]string{
	"handlers":   {"web", "views", "reconcile", "ledger", "client"},
	"web":        {"static"},
	"views":      {},
	"reconcile":  {"ledger"},
	"ledger":     {"migrations"},
	"migrations": {},
	"static":     {},
	"client":     {},
	"examples":   {"client"},
	"internal":   {"reconcile"}, // what tests use, which nothing else may import
}

// fenced names the libraries that only some folders may know, so that each could be
// replaced in one place. A prefix covers the packages below it.
var fenced = map[string][]string{
	"database/sql":                    {"ledger"},
	"github.com/jmoiron/sqlx":         {"ledger"},
	"github.com/lib/pq":               {"ledger"},
	"github.com/jackc/pgx":            {"ledger"},
	"github.com/pressly/goose":        {"ledger"},
	"github.com/peterldowns/pgtestdb": {"ledger"},
	// The adapter for Echo is a package of its own, so that nobody else's client knows Echo.
	"github.com/labstack/echo":        {"web", "handlers", "cmd", "client/gateway/echogateway"},
	"github.com/a-h/templ":            {"views", "handlers", "web"},
	"testing":                         {"ledger/ledgertest", "web/browsertest", "internal/chain"},
	"github.com/playwright-community": {"web/browsertest"},
}

// echoAdapter is the one package of the client that may need a library: it is only for
// those who have that library already, and no other may import it.
const echoAdapter = module + "/client/gateway/echogateway"

// pkg is what the rules look at of a package.
type pkg struct {
	path     string
	imports  []string // of its own files, without tests
	deps     []string // all of them, transitively
	standard bool
}

// violations checks every rule over the packages of the module and their
// dependencies, and says each breach in a sentence.
func violations(all map[string]pkg) []string {
	var found []string
	for _, path := range slices.Sorted(maps.Keys(all)) {
		p := all[path]
		from, ours := folder(p.path)
		if !ours {
			continue
		}
		for _, imported := range p.imports {
			if to, ours := folder(imported); ours && !mayImport(from, to) {
				found = append(found, fmt.Sprintf("%s imports %s: %s may not import %s", p.path, imported, from, to))
			}
			if within(imported, module+"/ledger/ledgertest") || within(imported, module+"/internal/chain") {
				found = append(found, fmt.Sprintf("%s imports %s: only tests may", p.path, imported))
			}
			for library, folders := range fenced {
				if within(imported, library) && !slices.ContainsFunc(folders, func(f string) bool { return within(p.path, module+"/"+f) }) {
					found = append(found, fmt.Sprintf("%s imports %s: only %s may", p.path, imported, strings.Join(folders, ", ")))
				}
			}
		}
		if from == "client" && p.path != echoAdapter {
			for _, d := range p.deps {
				if !all[d].standard && !within(d, module+"/client") {
					found = append(found, fmt.Sprintf("%s depends on %s: the client is the standard library only", p.path, d))
				}
			}
		}
	}
	return found
}

func mayImport(from, to string) bool {
	return from == to || from == "cmd" || slices.Contains(layers[from], to)
}

// folder is the top folder of a package of ours.
func folder(path string) (string, bool) {
	rest, ours := strings.CutPrefix(path, module+"/")
	if !ours {
		return "", false
	}
	top, _, _ := strings.Cut(rest, "/")
	return top, true
}

// within also takes major versions as below: github.com/x/y/v4 is within github.com/x/y.
func within(path, root string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}

func TestImports(t *testing.T) {
	t.Parallel()
	all := list(t)
	if _, ok := all[module+"/ledger"]; !ok {
		t.Fatalf("%d packages listed, and the ledger is not among them", len(all))
	}
	for _, v := range violations(all) {
		t.Error(v)
	}
}

// Every top folder with Go code must have been thought about.
func TestEveryFolderHasARule(t *testing.T) {
	t.Parallel()
	for path := range list(t) {
		if top, ours := folder(path); ours && top != "cmd" && layers[top] == nil {
			t.Errorf("%s: no rule says what %s may import", path, top)
		}
	}
}

// list asks the go command for the module's packages and all that they depend on.
func list(t *testing.T) map[string]pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports,Deps,Standard", module+"/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("couldn't list the packages: %v\n%s", err, stderr.String())
	}
	all := map[string]pkg{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath    string
			Imports, Deps []string
			Standard      bool
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("couldn't read the package list: %v", err)
		}
		all[p.ImportPath] = pkg{path: p.ImportPath, imports: p.Imports, deps: p.Deps, standard: p.Standard}
	}
}

// A rule that catches nothing looks like a rule that is kept: each is tried on a
// graph with one breach planted.
func TestEachRuleCatchesItsBreach(t *testing.T) {
	t.Parallel()
	clean := func() map[string]pkg {
		return map[string]pkg{
			"fmt":                       {path: "fmt", standard: true},
			"database/sql":              {path: "database/sql", standard: true},
			"quittance/cmd/quittance":   {path: "quittance/cmd/quittance", imports: []string{"quittance/handlers", "quittance/ledger", "github.com/labstack/echo/v4"}},
			"quittance/handlers/api":    {path: "quittance/handlers/api", imports: []string{"quittance/web", "quittance/views", "quittance/reconcile/effects", "quittance/ledger", "quittance/client", "github.com/labstack/echo/v4", "github.com/a-h/templ"}},
			"quittance/web":             {path: "quittance/web", imports: []string{"quittance/static", "github.com/labstack/echo/v4"}},
			"quittance/reconcile/canon": {path: "quittance/reconcile/canon", imports: []string{"fmt"}},
			"quittance/ledger":          {path: "quittance/ledger", imports: []string{"database/sql", "github.com/jmoiron/sqlx", "github.com/lib/pq", "quittance/migrations"}},
			"quittance/client":          {path: "quittance/client", imports: []string{"fmt"}, deps: []string{"fmt"}},
			"quittance/client/spool":    {path: "quittance/client/spool", imports: []string{"quittance/client"}, deps: []string{"fmt", "quittance/client"}},
		}
	}
	if got := violations(clean()); len(got) != 0 {
		t.Fatalf("a clean graph has breaches: %q", got)
	}
	for name, plant := range map[string]struct{ in, imports, dep, says string }{
		"rule below decides over rule above": {in: "quittance/ledger", imports: "quittance/reconcile/canon", says: "ledger may not import reconcile"},
		"reconcile knows the web":            {in: "quittance/reconcile/canon", imports: "quittance/web", says: "reconcile may not import web"},
		"web knows the ledger":               {in: "quittance/web", imports: "quittance/ledger", says: "web may not import ledger"},
		"handlers reach into cmd":            {in: "quittance/handlers/api", imports: "quittance/cmd/quittance", says: "handlers may not import cmd"},
		"handlers embed the migrations":      {in: "quittance/handlers/api", imports: "quittance/migrations", says: "handlers may not import migrations"},
		"sqlx in reconcile":                  {in: "quittance/reconcile/canon", imports: "github.com/jmoiron/sqlx", says: "only ledger may"},
		"pq below itself in handlers":        {in: "quittance/handlers/api", imports: "github.com/lib/pq/oid", says: "only ledger may"},
		"database/sql in cmd":                {in: "quittance/cmd/quittance", imports: "database/sql", says: "only ledger may"},
		"Echo in reconcile":                  {in: "quittance/reconcile/canon", imports: "github.com/labstack/echo/v4/middleware", says: "only web, handlers, cmd, client/gateway/echogateway may"},
		"templ in cmd":                       {in: "quittance/cmd/quittance", imports: "github.com/a-h/templ", says: "only views, handlers, web may"},
		"test helper in the program":         {in: "quittance/cmd/quittance", imports: "quittance/ledger/ledgertest", says: "only tests may"},
		"a chain in the program":             {in: "quittance/cmd/quittance", imports: "quittance/internal/chain", says: "only tests may"},
		"testing in the program":             {in: "quittance/web", imports: "testing", says: "only ledger/ledgertest, web/browsertest, internal/chain may"},
		"client pulls in a library":          {in: "quittance/client/spool", dep: "github.com/google/uuid", says: "standard library only"},
		"client pulls in the ledger":         {in: "quittance/client", imports: "quittance/ledger", says: "client may not import ledger"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			graph := clean()
			p := graph[plant.in]
			if plant.imports != "" {
				p.imports = append(p.imports, plant.imports)
			}
			if plant.dep != "" {
				p.deps = append(p.deps, plant.dep)
			}
			graph[plant.in] = p
			got := violations(graph)
			if len(got) != 1 || !strings.Contains(got[0], plant.in) || !strings.Contains(got[0], plant.says) {
				t.Errorf("breaches %q, want one that says %q", got, plant.says)
			}
		})
	}
}
