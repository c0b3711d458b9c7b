package httpapi

import (
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"golang.org/x/net/http/httpguts"

	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/block"
	"quittance/reconcile/lookup/fetch"
	"quittance/reconcile/lookup/outbound"
	"quittance/reconcile/lookup/secret"
	"quittance/reconcile/policy/read"
)

// Kind is this look-up's name in the policy.
const Kind = "http"

// Read reads an http look-up.
func Read(b *block.Block) lookup.Source {
	path := b.KindPath(Kind)
	f := b.Own(Kind, "url", "method", "read_only", "headers", "body", "oauth2", "client_certificate")
	s := &source{absence: b.AbsenceIsProof, secrets: secret.NewSet()}
	s.rules = b.Rules()
	u := readURL(b, f["url"], path+".url")
	if f != nil && f["url"] == nil {
		b.Mistake(b.Kind, path, "url is missing: where to ask")
	}
	if u != nil {
		s.host, s.request.url = u.host, &u.template
	}
	s.canary = readCanary(b, u)
	if s.canary != nil && s.rules.FindsByArgument() {
		n, at := b.At("found")
		b.Mistake(n, at, "must find records by effect.business_key, vendor_key or reference: the canary has no arguments to be found by")
	}
	s.request.method = readMethod(b, f, path)
	s.request.headers = readHeaders(b, f["headers"], path+".headers", s.secrets)
	if n := f["body"]; n != nil {
		if n.Type() != ast.MappingType {
			b.Mistake(n, path+".body", "must be a mapping, which is sent as JSON")
		}
		s.request.body = readBody(b, n, path+".body")
	}
	tls := readCertificate(b, f["client_certificate"], path+".client_certificate", s.secrets)
	client := outbound.New(outbound.Options{AllowPrivate: b.AllowPrivate, TLS: tls})
	s.fetcher = &fetch.Fetcher{Do: client.Do}
	if grant := readOAuth2(b, f["oauth2"], path+".oauth2", s.secrets); grant != nil {
		grant.client = client
		s.fetcher.Authorize = grant.authorize
		for _, h := range s.request.headers {
			if h.name == "Authorization" {
				b.Mistake(f["oauth2"], path+".oauth2", "sets Authorization, and so do the headers")
			}
		}
	}
	return s
}

func readMethod(b *block.Block, f map[string]ast.Node, path string) string {
	method := b.Choice(f["method"], path+".method", http.MethodGet, http.MethodGet, http.MethodPost)
	readOnly := b.Boolean(f["read_only"], path+".read_only")
	switch {
	case method == http.MethodPost && !readOnly:
		b.Mistake(f["method"], path+".method", "POST needs read_only: true, by which you say that this request changes nothing there")
	case method == http.MethodGet && f["body"] != nil:
		b.Mistake(f["body"], path+".body", "goes with method: POST")
	}
	return method
}

// urlTemplate is a URL whose host is fixed.
type urlTemplate struct {
	template read.Template
	host     string
}

func readURL(b *block.Block, n ast.Node, path string) *urlTemplate {
	t := b.Template(n, path)
	if t == nil {
		return nil
	}
	b.CheckTemplate(n, path, t)
	if len(t.Parts) == 0 || t.Parts[0].Text == "" {
		b.Mistake(n, path, "must start with https://")
		return nil
	}
	first := t.Parts[0].Text
	_, after, _ := strings.Cut(first, "://")
	if len(t.Parts) > 1 && !strings.ContainsAny(after, "/?") {
		b.Mistake(n, path, "the host must be fixed: a field may stand only after it")
		return nil
	}
	for _, p := range t.Parts {
		if strings.Contains(p.Text, "#") {
			b.Mistake(n, path, "a fragment (#) is never sent")
			return nil
		}
	}
	if !b.CheckTarget(n, path, first) {
		return nil
	}
	u, _ := url.Parse(first)
	return &urlTemplate{*t, strings.ToLower(u.Host)}
}

func onHost(text string, u *urlTemplate) bool {
	other, err := url.Parse(text)
	if err != nil {
		return false
	}
	scheme, _, _ := strings.Cut(u.template.Parts[0].Text, "://")
	return strings.EqualFold(other.Host, u.host) && strings.EqualFold(other.Scheme, scheme)
}

// reserved are headers that are the machinery's own.
var reserved = map[string]bool{"Host": true, "Content-Length": true, "Transfer-Encoding": true, "Connection": true, "Content-Type": true, "Accept-Encoding": true}

func readHeaders(b *block.Block, n ast.Node, path string, set *secret.Set) (list []header) {
	for _, e := range b.Entries(n, path) {
		at := read.Join(path, e.Name)
		name := textproto.CanonicalMIMEHeaderKey(e.Name)
		if !httpguts.ValidHeaderFieldName(e.Name) || reserved[name] {
			b.Mistake(e.Key, at, "is not a header that can be set here")
			continue
		}
		value := secret.Read(b.Reader, e.Value, at, set)
		if !httpguts.ValidHeaderFieldValue(value.Reveal()) {
			b.Mistake(e.Value, at, "holds a character that a header cannot have")
		}
		if !value.Secret() && (name == "Authorization" || name == "Cookie") && value.String() != "" {
			secret.InTheOpen(b.Reader, e.Value, at)
		}
		list = append(list, header{name, value})
	}
	return list
}

// readBody reads JSON whose texts are templates.
func readBody(b *block.Block, n ast.Node, path string) *node {
	switch n := n.(type) {
	case *ast.MappingNode:
		out := &node{}
		for _, e := range b.Entries(n, path) {
			out.names = append(out.names, e.Name)
			out.members = append(out.members, *readBody(b, e.Value, read.Join(path, e.Name)))
		}
		return out
	case *ast.SequenceNode:
		out := &node{isArray: true}
		for i, item := range n.Values {
			out.members = append(out.members, *readBody(b, item, fmt.Sprintf("%s[%d]", path, i)))
		}
		return out
	case *ast.NullNode:
		return &node{literal: []byte("null")}
	case *ast.BoolNode:
		return &node{literal: fmt.Append(nil, n.Value)}
	case *ast.IntegerNode, *ast.FloatNode:
		return &node{literal: []byte(n.GetToken().Value)}
	}
	t := b.Template(n, path)
	if t == nil {
		return &node{literal: []byte("null")}
	}
	b.CheckTemplate(n, path, t)
	return &node{text: t}
}
