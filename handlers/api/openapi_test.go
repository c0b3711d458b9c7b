package api

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
)

type document struct {
	OpenAPI    string
	Paths      map[string]map[string]operation
	Components struct {
		Schemas         map[string]map[string]any
		SecuritySchemes map[string]any
	}
}

type operation struct {
	OperationID string
	Parameters  []struct{ Name, In string }
	RequestBody *struct{ Content map[string]any }
	Responses   map[string]any
}

func described(t *testing.T) (document, string) {
	t.Helper()
	got := call(t, "", "GET", serve(t, &stub{})+"/openapi.json", "")
	var d document
	got.into(t, &d)
	return d, got.body
}

func TestOpenAPIHasEveryRouteAndNoOther(t *testing.T) {
	t.Parallel()
	e := echo.New()
	if err := Register(e, Options{Engine: &stub{}, Access: doors{}}); err != nil {
		t.Fatal(err)
	}
	registered := map[string]bool{}
	for _, r := range e.Routes() {
		path, _ := openAPIPath(r.Path)
		registered[r.Method+" "+path] = true
	}
	d, _ := described(t)
	if d.OpenAPI != "3.1.0" {
		t.Errorf("version %q", d.OpenAPI)
	}
	ids := map[string]bool{}
	for path, item := range d.Paths {
		for method, op := range item {
			name := strings.ToUpper(method) + " " + path
			if !registered[name] {
				t.Errorf("%s is described and not served", name)
			}
			delete(registered, name)
			if op.OperationID == "" || ids[op.OperationID] {
				t.Errorf("%s: operation id %q", name, op.OperationID)
			}
			ids[op.OperationID] = true
			if op.Responses["default"] == nil || len(op.Responses) < 2 {
				t.Errorf("%s: answers %v", name, slices.Sorted(maps.Keys(op.Responses)))
			}
			if strings.Count(path, "{") > len(op.Parameters) {
				t.Errorf("%s: a path parameter is not described", name)
			}
		}
	}
	for name := range registered {
		t.Errorf("%s is served and not described", name)
	}
}

func TestOpenAPIReferencesResolve(t *testing.T) {
	t.Parallel()
	d, body := described(t)
	const prefix = `"$ref":"#/components/schemas/`
	rest := body
	for {
		_, after, more := strings.Cut(rest, prefix)
		if !more {
			break
		}
		name, tail, _ := strings.Cut(after, `"`)
		if d.Components.Schemas[name] == nil {
			t.Errorf("%s is referred to and missing", name)
		}
		rest = tail
	}
}

func TestOpenAPIAgreesWithTheDecoder(t *testing.T) {
	t.Parallel()
	d, _ := described(t)
	begin := d.Components.Schemas["BeginRequest"]
	raw, _ := json.Marshal(begin["required"])
	var required []string
	_ = json.Unmarshal(raw, &required)
	slices.Sort(required)
	want := []string{"arguments", "attempt_id", "lease", "run_id", "tool"}
	if !slices.Equal(required, want) {
		t.Errorf("begin requires %v in the document, %v when it is read", required, want)
	}
	if begin["additionalProperties"] != false {
		t.Error("the document lets a begin have other members; the decoder does not")
	}
	if d.Components.Schemas["BeginAnswer"]["additionalProperties"] == false {
		t.Error("an answer that may not grow breaks strict clients at the next version")
	}
}
