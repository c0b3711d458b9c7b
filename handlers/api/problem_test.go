package api

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"quittance/client"
	"quittance/reconcile/effects"
	"quittance/web"
)

// codesOf reads the constants of a file whose names begin with Code; the source is asked,
// so that a new one cannot be forgotten.
func codesOf(t *testing.T, path string) (codes []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Code") || len(spec.Values) == 0 {
			return true
		}
		code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		codes = append(codes, code)
		return true
	})
	if len(codes) < 15 {
		t.Fatalf("only %d codes found in %s: the test looks in the wrong place", len(codes), path)
	}
	return codes
}

// Every code that the engine declares must read as a problem, by a word that the client
// knows too.
func TestEveryCodeHasItsDocument(t *testing.T) {
	t.Parallel()
	branched := codesOf(t, "../../client/problem.go")
	for _, code := range codesOf(t, "../../reconcile/effects/refusal.go") {
		k, known := kinds[effects.Code(code)]
		if !known {
			t.Errorf("%s has no document", code)
		}
		if !slices.Contains(branched, code) {
			t.Errorf("%s cannot be branched on: the client has no constant of it", code)
		}
		if k.final && k.retryable {
			t.Errorf("%s is final and retryable", code)
		}
		if k.retryAction == client.RetryNewIntent {
			t.Errorf("%s suggests a fresh key", code)
		}
	}
}

func TestRefusalsTellAProgramWhatToDo(t *testing.T) {
	t.Parallel()
	s := &stub{answers: []effects.Answer{{Refusal: &effects.Refusal{
		Code: effects.CodeInFlight, Detail: "Attempt 1 is under way.", RunID: "a/b", EffectID: "e1", State: "in_flight",
		RetryAfter: 4200 * time.Millisecond, LogPosition: "p",
	}}}}
	got := call(t, "agent", "POST", serve(t, s)+"/v1/effects", `{"run_id":"r","lease":"l","attempt_id":"a","tool":"t","arguments":{}}`)
	var p client.Problem
	got.into(t, &p)
	if got.status != 409 || got.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %v", got.status, got.header)
	}
	if p.RetryAfter != 5 || got.header.Get("Retry-After") != "5" {
		t.Errorf("retry_after %d and header %q: both must be 5, rounded up", p.RetryAfter, got.header.Get("Retry-After"))
	}
	if p.Code != client.CodeInFlight || !p.Retryable || p.RetryAction != client.RetryPoll || p.Final || p.Poll != "/v1/effects/e1" || p.LogPosition != "p" {
		t.Errorf("%+v", p)
	}
}

// Two packages write problems; a client reads both with one type.
func TestTheMachinerysProblemsAreTheClients(t *testing.T) {
	t.Parallel()
	offset := int64(3)
	raw, err := json.Marshal(web.Problem{
		Title: "t", Status: 400, Detail: "d", Code: "c", Retryable: true, RetryAction: "r", RetryAfter: 1, Final: true,
		Errors: []web.FieldError{{Pointer: "/a", Detail: "d"}}, Offset: &offset, Pointer: "/a", Limit: 1, RequestID: "id",
	})
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	var p client.Problem
	if err := dec.Decode(&p); err != nil {
		t.Error(err)
	}
	back, err := json.Marshal(p)
	if err != nil || !bytes.Contains(back, []byte(`"offset":3`)) || len(back) != len(raw) {
		t.Errorf("%s\n%s", raw, back)
	}
}
