package chain

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
)

// Answer is what a node answers: its result, and where that is nil a whole body.
type Answer struct {
	Result json.RawMessage
	Body   string
	Status int // 0 is 200
	Header http.Header
}

// Behind starts a node that passes every question on to the chain, and its answer through
// edit, and returns its URL. Edit is called by several requests at once.
func (c *Chain) Behind(edit func(method string, params json.RawMessage, a Answer) Answer) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		question, err := io.ReadAll(r.Body)
		var q struct {
			ID     json.RawMessage
			Method string
			Params json.RawMessage
		}
		if err != nil || json.Unmarshal(question, &q) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		got, err := c.http.Post(c.URL, "application/json", bytes.NewReader(question))
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer got.Body.Close()
		body, _ := io.ReadAll(got.Body)
		var whole struct{ Result json.RawMessage }
		_ = json.Unmarshal(body, &whole)
		a := edit(q.Method, q.Params, Answer{Result: whole.Result, Body: string(body)})
		for name, values := range a.Header {
			w.Header()[name] = values
		}
		if a.Status != 0 {
			w.WriteHeader(a.Status)
		}
		if a.Result != nil {
			a.Body = `{"jsonrpc":"2.0","id":` + string(q.ID) + `,"result":` + string(a.Result) + `}`
		}
		_, _ = io.WriteString(w, a.Body)
	}))
	c.t.Cleanup(s.Close)
	return s.URL
}
