package web

import (
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
)

// FuzzProblem: whatever is sent, the answer is whole JSON that says its own status, and a
// refusal is a problem document that repeats no value that it was sent.
func FuzzProblem(f *testing.F) {
	e, err := New(Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	e.POST("/orders/:id", func(c echo.Context) error {
		if _, err := Param(c, "id"); err != nil {
			return err
		}
		return takeOrder(c)
	})
	for _, body := range []string{
		`{"id":"x","count":1}`, `{"id":"VALUE","count":"VALUE"}`, `{"id":1`, `{"id":"a","id":"b"}`, "\xff", `[[[[`, `{"lines":[{"sku":"VALUE","n":"VALUE"}],"due":"VALUE","raw":"\ud800"}`,
	} {
		f.Add("/orders/1", "application/json", []byte(body), "a-value-that-nobody-else-says")
	}
	f.Add("/orders/%zz?%zz", "text/plain;;", []byte("VALUE"), "<script>alert(1)</script>")
	f.Fuzz(func(t *testing.T, target, kind string, body []byte, value string) {
		quoted, _ := json.Marshal(value)
		body = []byte(strings.ReplaceAll(string(body), "VALUE", string(quoted[1:len(quoted)-1])))
		r := httptest.NewRequest("POST", "/orders/1", strings.NewReader(string(body)))
		if u, err := r.URL.Parse(target); err == nil && strings.HasPrefix(u.Path, "/") {
			r.URL = u
		}
		r.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		if !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%d without JSON: %q", w.Code, w.Body)
		}
		if h := w.Header(); h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Fatalf("headers of %d: %v", w.Code, h)
		}
		if w.Code == 200 {
			return
		}
		var p Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Status != w.Code || p.Code == "" || p.Title == "" || p.RequestID == "" {
			t.Fatalf("%d: %s, %v", w.Code, w.Body, err)
		}
		if w.Code >= 500 || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Fatalf("%d, %s: %s", w.Code, w.Header().Get("Content-Type"), w.Body)
		}
		if p.Offset != nil && (*p.Offset < 0 || *p.Offset > int64(len(body))) {
			t.Fatalf("offset %d of %d bytes", *p.Offset, len(body))
		}
		// Long enough not to be a word of ours; names, which the pointers give, are no values.
		if len(value) > 60 && !strings.Contains(p.Pointer, value) && strings.Contains(p.Detail, value) {
			t.Fatalf("the answer repeats %q: %s", value, w.Body)
		}
		for _, e := range p.Errors {
			if len(value) > 60 && strings.Contains(e.Detail, value) {
				t.Fatalf("the answer repeats %q: %s", value, w.Body)
			}
		}
	})
}
