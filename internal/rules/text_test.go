package rules

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// root is the repository, seen from this package.
const root = "../.."

// statement matches a Go string that is SQL: keywords in capitals as our style has
// them, or all small as a slip would.
var statement = regexp.MustCompile(`^\s*(?:(?:SELECT|WITH|INSERT INTO|UPDATE|DELETE FROM|TRUNCATE|MERGE INTO)\s` +
	`|select\s[\w*,.()\s]+\sfrom\s+\w|insert\s+into\s+\w|update\s+\w+\s+set\s|delete\s+from\s+\w)`)

// sqlIn lists the SQL strings of a Go file.
func sqlIn(name string, src []byte) ([]string, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(lit.Value)
		if err == nil && statement.MatchString(text) {
			found = append(found, fmt.Sprintf("%s: SQL outside the ledger", set.Position(lit.Pos())))
		}
		return true
	})
	return found, nil
}

func TestSQLStandsInTheLedgerAlone(t *testing.T) {
	t.Parallel()
	checked := 0
	files(t, func(path string, text []byte) {
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "ledger/") {
			return
		}
		checked++
		found, err := sqlIn(path, text)
		if err != nil {
			t.Errorf("couldn't read %s: %v", path, err)
		}
		for _, f := range found {
			t.Error(f)
		}
	})
	if checked == 0 {
		t.Error("no file was checked")
	}
}

func TestSQLIsRecognised(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"SELECT 1":                                true,
		"\n\t\tUPDATE runs SET state = $1":        true,
		"WITH x AS (SELECT 1) SELECT * FROM x":    true,
		"select id, state from runs":              true,
		"insert into runs values ($1)":            true,
		"delete from runs":                        true,
		"Select one from the list":                false,
		"update the policy, then set it in force": false,
		"SELECTED": false,
		"with":     false,
	} {
		src := fmt.Sprintf("package x\n\nvar q = %q\n", text)
		got, err := sqlIn("x.go", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		if (len(got) == 1) != want {
			t.Errorf("%q is SQL: %v, want %v", text, got, want)
		}
	}
}

// private matches what belongs to somebody's machine and means nothing to a reader.
// The names are put together so that this file passes its own rule.
var private = regexp.MustCompile(`(?:^|[^\w./-])(/(?:` + strings.Join([]string{"work", "root", "home", "Users"}, "|") + `)/[\w.-]*)`)

// publicPaths are such paths that are the same on everybody's machine.
var publicPaths = []string{"/" + "home/linuxbrew"}

func privateIn(text []byte) (found []string) {
	for _, m := range private.FindAllSubmatch(text, -1) {
		path := string(m[1])
		public := false
		for _, p := range publicPaths {
			public = public || strings.HasPrefix(path, p)
		}
		if !public {
			found = append(found, path)
		}
	}
	return found
}

func TestNoFileMentionsSomebodysMachine(t *testing.T) {
	t.Parallel()
	files(t, func(path string, text []byte) {
		for _, p := range privateIn(text) {
			t.Errorf("%s mentions %s", path, p)
		}
	})
}

func TestPrivatePathsAreRecognised(t *testing.T) {
	t.Parallel()
	slash := "/"
	for text, want := range map[string]int{
		slash + "work/main/x.go":                               1,
		`"` + slash + "root/go" + `" and ` + slash + "home/me": 2,
		"see " + slash + "Users/me":                            1,
		"net" + slash + "work/":                                0,
		"https://example.com" + slash + "home/":                0,
		slash + "home/linuxbrew/.linuxbrew":                    0,
		slash + "worker/":                                      0,
	} {
		if got := privateIn([]byte(text)); len(got) != want {
			t.Errorf("%q: %q, want %d", text, got, want)
		}
	}
}

// A skipped test looks like a passed one. What a test needs is installed by
// `make setup`, and where it is missing the test fails and says so.
var skips = regexp.MustCompile(`\.Skip` + `(?:f|Now)?\(`)

func TestNoTestIsSkipped(t *testing.T) {
	t.Parallel()
	files(t, func(path string, text []byte) {
		if strings.HasSuffix(path, "_test.go") && skips.Match(text) {
			t.Errorf("%s skips a test", path)
		}
	})
}

// files calls f for every text file that is part of the repository.
func files(t *testing.T, f func(path string, text []byte)) {
	t.Helper()
	notOurs := map[string]bool{".git": true, "node_modules": true, "bin": true, ".cache": true, "bench-out": true, "__pycache__": true}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.IsDir() && notOurs[d.Name()]:
			return filepath.SkipDir
		case d.Name() == ".git": // of a worktree: a file that says where the repository is
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // somebody's temporary file, gone since it was listed
		}
		if err != nil {
			return err
		}
		if !utf8.Valid(text) {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		f(filepath.ToSlash(rel), text)
		return nil
	})
	if err != nil {
		t.Fatalf("couldn't read the repository: %v", err)
	}
}
