package httpapi_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quittance/reconcile/lookup"
)

func fill(w *world, q *lookup.Question) error {
	amount, reason := w.tool().Amount(q.Arguments)
	if reason != "" {
		return fmt.Errorf("%s", reason)
	}
	q.Amount = amount
	return nil
}

func TestOAuth2ClientCredentials(t *testing.T) {
	t.Parallel()
	tokens := 0
	status := 200
	a, base := serve(t, nil)
	a.answer = func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/token" {
			says(fmt.Sprintf(`{"data":[],"you":%q}`, r.Header.Get("Authorization")))(w, r)
			return
		}
		id, secret, _ := r.BasicAuth()
		if id != "us" || secret != "zz91%3Asecret" {
			t.Errorf("asked for a token as %q, %q", id, secret)
		}
		tokens++
		w.WriteHeader(status)
		says(fmt.Sprintf(`{"access_token":"zz91-token-%d","token_type":"Bearer","expires_in":61}`, tokens))(w, r)
	}
	w := open(t)
	w.env["SECRET"] = "zz91:secret"
	w.declare(simple + "      http:\n        url: " + base + "/?q={business_key}\n        oauth2: {token_url: '" + base + "/token', client_id: us, client_secret: '${env:SECRET}', scopes: [read, list]}\n")
	for range 3 {
		if _, seen := w.ask(); seen.Problem != lookup.NoProblem || !strings.Contains(seen.Excerpt, "[secret]") {
			t.Errorf("%s: %s", seen.Problem, seen.Excerpt)
		}
	}
	if tokens != 1 {
		t.Errorf("%d tokens for three look-ups, want 1", tokens)
	}
	if a.bodies[0] != "grant_type=client_credentials&scope=read+list" || a.asked[1].Header.Get("Authorization") != "Bearer zz91-token-1" {
		t.Errorf("%s, %s", a.bodies[0], a.asked[1].Header.Get("Authorization"))
	}
	time.Sleep(1100 * time.Millisecond) // 61 s less the 60 s before its end
	status = 401
	if _, seen := w.ask(); seen.Problem != lookup.Denied || tokens != 2 {
		t.Errorf("%s after %d tokens", seen.Problem, tokens)
	}
}

func TestClientCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certificate, key := selfSigned(t)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	s := httptest.NewUnstartedServer(http.HandlerFunc(says(`{"data":[]}`)))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // the refused handshake is the test
	s.StartTLS()
	t.Cleanup(s.Close)
	server := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	for name, raw := range map[string][]byte{"ours.pem": certificate, "theirs.pem": server} {
		if err := os.WriteFile(filepath.Join(dir, name), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := open(t)
	w.env["KEY"] = string(key)
	config := simple + "      http:\n        url: " + s.URL + "/?q={business_key}\n        client_certificate: {authorities: " + dir + "/theirs.pem"
	w.declare(config + ", certificate: " + dir + "/ours.pem, key: '${env:KEY}'}\n")
	if _, seen := w.ask(); seen.Problem != lookup.NoProblem {
		t.Errorf("with the certificate: %s %s", seen.Problem, seen.Detail)
	}
	w.declare(config + "}\n")
	if _, seen := w.ask(); seen.Problem == lookup.NoProblem {
		t.Error("without the certificate it was let in")
	}
}

func selfSigned(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "us"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}
