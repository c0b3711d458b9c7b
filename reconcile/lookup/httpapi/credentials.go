package httpapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/goccy/go-yaml/ast"

	"quittance/reconcile/lookup"
	"quittance/reconcile/lookup/block"
	"quittance/reconcile/lookup/fetch"
	"quittance/reconcile/lookup/outbound"
	"quittance/reconcile/lookup/secret"
)

// grant is the client-credentials grant of OAuth 2.0 (RFC 6749, 4.4). A token is used until
// shortly before it expires.
type grant struct {
	tokenURL   string
	id, secret secret.Text
	scopes     []string
	secrets    *secret.Set
	client     *outbound.Client

	mu      sync.Mutex
	token   string
	expires time.Time
}

// early is how long before its end a token is no longer used: a look-up may have many pages.
const early = 60 * time.Second

func readOAuth2(b *block.Block, n ast.Node, path string, set *secret.Set) *grant {
	if n == nil {
		return nil
	}
	f := b.Reader.Fields(n, path, "token_url", "client_id", "client_secret", "scopes")
	if f == nil {
		return nil
	}
	for _, name := range []string{"token_url", "client_id", "client_secret"} {
		if f[name] == nil {
			b.Mistake(n, path, "%s is missing", name)
		}
	}
	g := &grant{secrets: set}
	if text, ok := b.Text(f["token_url"], path+".token_url"); ok && b.CheckTarget(f["token_url"], path+".token_url", text) {
		g.tokenURL = text
	}
	g.id = secret.Read(b.Reader, f["client_id"], path+".client_id", set)
	g.secret = secret.Need(b.Reader, f["client_secret"], path+".client_secret", set)
	g.scopes = b.Texts(f["scopes"], path+".scopes", func(s string) error {
		if s == "" || strings.ContainsAny(s, " \"\\") {
			return errors.New("is not one scope")
		}
		return nil
	})
	return g
}

// authorize adds the token. One request at a time asks for it.
func (g *grant) authorize(ctx context.Context, r *http.Request) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.token == "" || !time.Now().Before(g.expires) {
		if err := g.ask(ctx); err != nil {
			return err
		}
	}
	r.Header.Set("Authorization", "Bearer "+g.token)
	return nil
}

func (g *grant) ask(ctx context.Context) error {
	form := url.Values{"grant_type": {"client_credentials"}}
	if len(g.scopes) > 0 {
		form.Set("scope", strings.Join(g.scopes, " "))
	}
	r, err := http.NewRequest(http.MethodPost, g.tokenURL, nil)
	if err != nil {
		return &fetch.Failure{Problem: lookup.AdapterError}
	}
	fetch.Repeatable(r, []byte(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	// Both are form-encoded first (RFC 6749, 2.3.1).
	r.SetBasicAuth(url.QueryEscape(g.id.Reveal()), url.QueryEscape(g.secret.Reveal()))
	got, failure := (&fetch.Fetcher{Do: g.client.Do}).One(ctx, r)
	if failure == nil {
		failure = fetch.Refusal(got, time.Now())
	}
	if failure != nil {
		if failure.Problem == lookup.Unexpected { // 400 invalid_client
			failure.Problem = lookup.Denied
		}
		failure.Err = errors.New("no access token was given")
		return failure
	}
	var token struct {
		Access  string `json:"access_token"`
		Type    string `json:"token_type"`
		Expires int64  `json:"expires_in"`
	}
	if err := json.Unmarshal(got.Body, &token); err != nil || token.Access == "" || !strings.EqualFold(token.Type, "bearer") {
		return &fetch.Failure{Problem: lookup.Denied, Err: errors.New("the answer holds no bearer token")}
	}
	g.secrets.Add(token.Access)
	g.token, g.expires = token.Access, time.Now().Add(time.Duration(token.Expires)*time.Second-early)
	return nil
}

// readCertificate reads a client certificate: the certificate from a file, its key from the
// environment, both PEM; and the authorities to trust instead of the system's.
func readCertificate(b *block.Block, n ast.Node, path string, set *secret.Set) *tls.Config {
	if n == nil {
		return nil
	}
	f := b.Reader.Fields(n, path, "certificate", "key", "authorities")
	if f == nil {
		return nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	file := func(name string) []byte {
		text, ok := b.Text(f[name], path+"."+name)
		if !ok || b.Stored {
			return nil
		}
		raw, err := b.ReadFile(text)
		if err != nil {
			b.Mistake(f[name], path+"."+name, "couldn't read the file %s", text)
		}
		return raw
	}
	if pem := file("authorities"); pem != nil {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			b.Mistake(f["authorities"], path+".authorities", "holds no certificate in PEM form")
		}
	}
	if (f["certificate"] == nil) != (f["key"] == nil) {
		b.Mistake(n, path, "certificate and key go together")
		return config
	}
	if f["certificate"] == nil {
		return config
	}
	key := secret.Read(b.Reader, f["key"], path+".key", set)
	if !key.Secret() {
		b.Mistake(f["key"], path+".key", "must be ${env:NAME}, which holds the key in PEM form")
	}
	if pem := file("certificate"); pem != nil && key.Reveal() != "" {
		pair, err := tls.X509KeyPair(pem, []byte(key.Reveal()))
		if err != nil {
			b.Mistake(f["certificate"], path+".certificate", "the certificate and the key are not a pair in PEM form")
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}
