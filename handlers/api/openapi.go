package api

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"quittance/client"
)

// describe writes the OpenAPI 3.1 document of the routes. It is made from the same
// table and the same types that serve them, so it cannot say something else.
func describe(table []route, version string) ([]byte, error) {
	schemas := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title:   "Quittance",
			Version: version,
			Description: "Records what agents are about to do before they do it, and what became of it. " +
				"Refusals are RFC 9457 problem documents.",
		},
		Paths:    map[string]*huma.PathItem{},
		Security: []map[string][]string{{"bearer": {}}},
		Components: &huma.Components{
			Schemas: schemas,
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"bearer": {Type: "http", Scheme: "bearer", Description: "An account's token for agents, a person's for people."},
			},
		},
	}
	// Requests first: their objects are closed. What only answers may grow.
	bodies := map[string]*huma.Schema{}
	for _, r := range table {
		if r.in != nil {
			bodies[r.method+r.path] = schemas.Schema(reflect.TypeOf(r.in), true, "")
		}
	}
	closed := slices.Collect(maps.Keys(schemas.Map()))
	problem := schemas.Schema(reflect.TypeFor[client.Problem](), true, "")
	for _, r := range table {
		if err := addOperation(doc, r, bodies[r.method+r.path], problem); err != nil {
			return nil, err
		}
	}
	for name, s := range schemas.Map() {
		if !slices.Contains(closed, name) {
			s.AdditionalProperties = nil
		}
	}
	raw, err := doc.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("couldn't write the API's description: %w", err)
	}
	return raw, nil
}

func addOperation(doc *huma.OpenAPI, r route, body, problem *huma.Schema) error {
	path, names := openAPIPath(r.path)
	op := &huma.Operation{
		OperationID: operationID(r.method, path),
		Summary:     r.does,
		Description: "For " + r.who.String() + ".",
		Responses: map[string]*huma.Response{
			"default": {
				Description: "A refusal.",
				Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: problem}},
			},
		},
	}
	if r.who == anyone {
		op.Security = []map[string][]string{} // none, against the document's default
	}
	for _, name := range names {
		op.Parameters = append(op.Parameters, &huma.Param{Name: name, In: "path", Required: true, Schema: &huma.Schema{Type: "string"}})
	}
	for _, q := range r.query {
		kind := "string"
		if q.whole {
			kind = "integer"
		}
		op.Parameters = append(op.Parameters, &huma.Param{Name: q.name, In: "query", Description: q.does, Schema: &huma.Schema{Type: kind}})
	}
	if body != nil {
		op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: body}}}
	}
	for status, zero := range r.answers {
		answer := &huma.Response{Description: http.StatusText(status)}
		if zero != nil {
			answer.Content = map[string]*huma.MediaType{
				"application/json": {Schema: doc.Components.Schemas.Schema(reflect.TypeOf(zero), true, "")},
			}
		}
		op.Responses[strconv.Itoa(status)] = answer
	}
	item := doc.Paths[path]
	if item == nil {
		item = &huma.PathItem{}
		doc.Paths[path] = item
	}
	switch r.method {
	case http.MethodGet:
		item.Get = op
	case http.MethodPut:
		item.Put = op
	case http.MethodPost:
		item.Post = op
	default:
		return fmt.Errorf("no place for a %s in the API's description", r.method)
	}
	return nil
}

// openAPIPath writes :run_id as {run_id}.
func openAPIPath(path string) (written string, names []string) {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if name, ok := strings.CutPrefix(part, ":"); ok {
			names = append(names, name)
			parts[i] = "{" + name + "}"
		}
	}
	return strings.Join(parts, "/"), names
}

// operationID is made of method and path, so that it stays when the code moves.
func operationID(method, path string) string {
	words := strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune("/{}.", r) })
	return strings.ToLower(method) + "-" + strings.Join(words, "-")
}

func (a *API) describeAPI(c echo.Context, _ identity) error {
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, a.openAPI)
}
