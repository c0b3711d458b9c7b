package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestScenarios plays every scenario in every language. Those of handed trials have
// tests of their own, below.
func TestScenarios(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range scenarios(t) {
		if !strings.HasPrefix(name, "bc") {
			w.everyLanguage(t, name)
		}
	}
}

func scenarios(t *testing.T) (list []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("scenarios", "*.json"))
	must(t, err)
	for _, f := range files {
		list = append(list, strings.TrimSuffix(filepath.Base(f), ".json"))
	}
	if len(list) == 0 {
		t.Fatal("there are no scenarios")
	}
	return list
}

func (w *world) everyLanguage(t *testing.T, name string) {
	for language, args := range languages(t) {
		t.Run(language+"/"+name, func(t *testing.T) {
			t.Parallel()
			w.play(t, language, args, args, name)
		})
	}
}

// TestOneLanguageGoesOnForAnother: what one client leaves behind, on disk and in a
// checkpoint, is taken up by another.
func TestOneLanguageGoesOnForAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := languages(t)
	for _, name := range []string{"occurrences", "spool-after-a-crash", "volatile"} {
		for first, args := range all {
			for second, next := range all {
				if first == second {
					continue
				}
				t.Run(name+"/"+first+" then "+second, func(t *testing.T) {
					t.Parallel()
					w.play(t, first+" then "+second, args, next, name)
				})
			}
		}
	}
}

// TestDigestsAgree: a run may be resumed by the client of another language.
func TestDigestsAgree(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("digests.json")
	must(t, err)
	var examples []struct {
		Tool, Arguments, Digest string
		Volatile                []string
	}
	must(t, json.Unmarshal(text, &examples))
	for language, args := range languages(t) {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			env := append(os.Environ(), runnerVariable+"=1", "QUITTANCE_URL=http://127.0.0.1:1", "QUITTANCE_TOKEN=t", "QUITTANCE_SPOOL="+t.TempDir())
			p := start(t, language, env, args)
			for _, x := range examples {
				got, err := p.ask(map[string]any{"op": "digest", "tool": x.Tool, "arguments": x.Arguments, "volatile": x.Volatile})
				if err != nil || got["digest"] != x.Digest {
					t.Errorf("%s %s: %v, want %s, %v", x.Tool, x.Arguments, got, x.Digest, err)
				}
			}
		})
	}
}
