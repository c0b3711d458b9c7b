package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/block"
	"quittance/reconcile/lookup/fetch"
	"quittance/reconcile/lookup/secret"
	"quittance/reconcile/policy/read"
)

// request is what is asked, with the question still to be put in.
type request struct {
	method  string
	url     *read.Template
	headers []header
	body    *node // nil for GET
}

type header struct {
	name  string
	value secret.Text
}

// build puts a question in.
func (r *request) build(q lookup.Question) (*http.Request, error) {
	target, err := block.URL(r.url, q)
	if err != nil {
		return nil, err
	}
	return r.to(target, q)
}

// to is the request to another URL.
func (r *request) to(target string, q lookup.Question) (*http.Request, error) {
	out, err := http.NewRequest(r.method, target, nil)
	if err != nil {
		return nil, errors.New("the question does not make a URL")
	}
	out.Header.Set("Accept", "application/json")
	if r.body != nil {
		raw, err := r.body.append(nil, q)
		if err != nil {
			return nil, err
		}
		out.Header.Set("Content-Type", "application/json")
		fetch.Repeatable(out, raw)
	}
	for _, h := range r.headers {
		out.Header.Set(h.name, h.value.Reveal())
	}
	return out, nil
}

// describe is the request for the record: headers as they stand in the policy.
func (r *request) describe(out *http.Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", out.Method, out.URL)
	for _, h := range r.headers {
		value := h.value.String()
		if h.value.Secret() {
			value = secret.Mask
		}
		fmt.Fprintf(&b, "\n%s: %s", h.name, value)
	}
	return b.String()
}

// node is a JSON body with templates for its texts.
type node struct {
	text    *read.Template
	literal []byte // anything but text, as JSON
	names   []string
	members []node // of an object, by names; of an array where there are none
	isArray bool
}

func (n *node) append(dst []byte, q lookup.Question) ([]byte, error) {
	var err error
	switch {
	case n.text != nil:
		// Escaped as a whole afterwards, so that no value can end the text it stands in.
		text, err := block.Fill(n.text, q, func(s string) (string, error) { return s, nil })
		if err != nil {
			return nil, err
		}
		quoted, err := json.Marshal(text)
		return append(dst, quoted...), err
	case n.literal != nil:
		return append(dst, n.literal...), nil
	}
	open, end := byte('{'), byte('}')
	if n.isArray {
		open, end = '[', ']'
	}
	dst = append(dst, open)
	for i := range n.members {
		if i > 0 {
			dst = append(dst, ',')
		}
		if !n.isArray {
			quoted, _ := json.Marshal(n.names[i])
			dst = append(append(dst, quoted...), ':')
		}
		if dst, err = n.members[i].append(dst, q); err != nil {
			return nil, err
		}
	}
	return append(dst, end), nil
}
