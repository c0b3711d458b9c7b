package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"quittance/client"
	"quittance/web"
)

// planted is in everything that is sent and must be in nothing that comes back.
const planted = "hunter2-planted"

// everyone's token opens every route of people.
const everyone = "qp_test-person-with-all-roles"

// operation is a call with a body, as the server itself describes it.
type operation struct {
	method, path, token string
	fields              map[string]string // name to JSON type; "" is any JSON
}

func (l *live) operations() (list []operation) {
	l.t.Helper()
	id, err := l.access.AddPerson(l.t.Context(), "Everyone", "", []string{"operator", "approver", "finance", "admin", "auditor"})
	must(l.t, err)
	must(l.t, l.access.AddPersonToken(l.t.Context(), id, "test", everyone, 0))
	type schema struct {
		Ref        string            `json:"$ref"`
		Type       any               `json:"type"`
		Properties map[string]schema `json:"properties"`
	}
	var doc struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct{ Schema schema }
			}
		}
		Components struct{ Schemas map[string]schema }
	}
	must(l.t, json.Unmarshal([]byte(l.get("", "/openapi.json")), &doc))
	for path, methods := range doc.Paths {
		for method, o := range methods {
			body, ok := o.RequestBody.Content["application/json"]
			if !ok || strings.HasPrefix(path, "/v1/inbox/") {
				continue // an event's form is its sender's; TestEventsOverHTTPThatAreRefused
			}
			op := operation{method: strings.ToUpper(method), path: path, token: agentToken, fields: map[string]string{}}
			for name, value := range map[string]string{"run_id": "r", "effect_id": "0199a0b0-0000-7000-8000-000000000000", "turn": "1"} {
				op.path = strings.ReplaceAll(op.path, "{"+name+"}", value)
			}
			if status, _ := l.send(op.method, op.token, op.path, "{}"); status == http.StatusForbidden {
				op.token = everyone
			}
			s := doc.Components.Schemas[strings.TrimPrefix(body.Schema.Ref, "#/components/schemas/")]
			for name, f := range s.Properties {
				op.fields[name] = ""
				switch kind := f.Type.(type) {
				case string:
					op.fields[name] = kind
				case []any:
					op.fields[name] = fmt.Sprint(kind[0])
				}
				if f.Ref != "" {
					op.fields[name] = "object"
				}
			}
			list = append(list, op)
		}
	}
	return list
}

// wrong are values of another type than a field's, by that type.
var wrong = map[string][]string{
	"string":  {`{"a":"` + planted + `"}`, `["` + planted + `"]`, `7`},
	"integer": {`"` + planted + `"`, `{"a":"` + planted + `"}`, `1.5`, `1e999`},
	"boolean": {`"` + planted + `"`, `0`},
	"array":   {`"` + planted + `"`, `{"a":"` + planted + `"}`},
	"object":  {`"` + planted + `"`, `["` + planted + `"]`},
}

// TestEveryCallRefusesEveryBadBody goes over the whole product of calls and of ways in
// which a body can be wrong. What is refused names where, repeats nothing, leaves
// nothing in the log, and changes nothing.
func TestEveryCallRefusesEveryBadBody(t *testing.T) {
	t.Parallel()
	var log safeBuffer
	l := start(t, func(o *web.Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	list := l.operations()
	if len(list) < 15 {
		t.Fatalf("only %d calls have a body", len(list))
	}
	for _, op := range list {
		refuse := func(name, body string, status int, says ...string) {
			t.Helper()
			got, answer := l.send(op.method, op.token, op.path, body)
			var p client.Problem
			if err := json.Unmarshal([]byte(answer), &p); err != nil || got != status || p.Status != status || p.Code == "" || p.Detail == "" {
				t.Errorf("%s %s, %s: %d %.300s", op.method, op.path, name, got, answer)
			}
			for _, want := range says {
				if !strings.Contains(answer, want) {
					t.Errorf("%s %s, %s: does not say %s: %.300s", op.method, op.path, name, want, answer)
				}
			}
			if strings.Contains(answer, planted) {
				t.Errorf("%s %s, %s: repeats what was sent: %.300s", op.method, op.path, name, answer)
			}
		}
		refuse("nothing", ``, 400, `"offset":0`)
		refuse("half of it", `{"note":"`+planted, 400, `"offset"`)
		refuse("two of it", `{}{"note":"`+planted+`"}`, 400, `"offset"`)
		refuse("no JSON", planted, 400, `"offset":0`)
		refuse("NaN", `{"note":NaN,"x":"`+planted+`"}`, 400, `"pointer":"/note"`)
		refuse("a name twice", `{"note":1,"note":"`+planted+`"}`, 400, `"pointer":"/note"`)
		refuse("no UTF-8", "{\"note\":\""+planted+"\xff\"}", 400, `"offset":24`)
		refuse("10,000 deep", `{"note":`+strings.Repeat(`{"a":`, 10_000)+`"`+planted+`"`+strings.Repeat("}", 10_001), 400, `"limit":256`)
		refuse("no object", `["`+planted+`"]`, 422)
		refuse("a text", `"`+planted+`"`, 422)
		refuse("null", `null`, 422)
		refuse("an unknown field", `{"no_such_field":"`+planted+`"}`, 422, `"pointer":"/no_such_field"`)
		for field, kind := range op.fields {
			for _, value := range wrong[kind] {
				refuse(field+" is "+value, `{"`+field+`":`+value+`}`, 422, `"pointer":"/`+field)
			}
		}
	}
	if strings.Contains(log.String(), planted) {
		t.Error("the log holds what was sent")
	}
	if v, err := l.agent.Run(t.Context(), "r", 0); err == nil {
		t.Errorf("something was opened by it: %+v", v)
	}
	if out, err := l.open("r").Do(t.Context(), "pay", map[string]int{"n": 1}, takenAs("ok")); err != nil || !out.Recorded {
		t.Errorf("the server does not serve any more: %v", err)
	}
}

// takenAs performs a call by returning a result.
func takenAs(result any) client.Perform {
	return func(context.Context, client.Call) (any, error) { return result, nil }
}

// safeBuffer is a log that handlers write to at once.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
