package outbound_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quittance/reconcile/lookup/outbound"
)

func TestPublicAddresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "1.1.1.1": true, "172.32.0.1": true,
		"127.0.0.1": false, "127.9.9.9": false, "10.0.0.1": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false,
		"169.254.169.254": false, "0.0.0.0": false, "100.64.0.1": false, "224.0.0.1": false, "255.255.255.255": false, "198.18.0.1": false,
		"::1": false, "::": false, "fe80::1": false, "fd00::1": false, "fec0::1": false, "ff02::1": false,
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::ffff:8.8.8.8": true,
		"64:ff9b::7f00:1": false, "2002:7f00:1::": false, "2001:db8::1": false, "fe80::1%eth0": false,
	} {
		if got := outbound.Public(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s is public: %v", text, got)
		}
	}
	for name, want := range map[string]bool{"bank.example": true, "localhost": false, "LOCALHOST.": false, "a.localhost": false, "": false, "10.0.0.1": false, "8.8.8.8": true} {
		if got := outbound.PublicName(name); got != want {
			t.Errorf("%q may be public: %v", name, got)
		}
	}
}

func get(t *testing.T, c *outbound.Client, url string) (outbound.Response, error) {
	t.Helper()
	r, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.Do(t.Context(), r)
}

// serve counts what reaches a server on the loopback address.
func serve(t *testing.T, h http.HandlerFunc) (url string, reached *atomic.Int64) {
	t.Helper()
	reached = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, reached
}

func TestAPrivateAddressIsNotDialled(t *testing.T) {
	t.Parallel()
	url, reached := serve(t, func(http.ResponseWriter, *http.Request) {})
	if _, err := get(t, outbound.New(outbound.Options{}), url); !errors.Is(err, outbound.ErrPrivate) {
		t.Errorf("a literal: %v", err)
	}
	// A name that resolves to it, alone or beside a public address.
	port := url[strings.LastIndex(url, ":"):]
	for _, list := range [][]string{{"127.0.0.1"}, {"8.8.8.8", "127.0.0.1"}, {"::ffff:127.0.0.1"}} {
		c := outbound.New(outbound.Options{Resolve: resolve(list...)})
		if _, err := get(t, c, "http://bank.example"+port); !errors.Is(err, outbound.ErrPrivate) {
			t.Errorf("%v: %v", list, err)
		}
	}
	if reached.Load() != 0 {
		t.Error("it was reached")
	}
	if _, err := get(t, outbound.New(outbound.Options{AllowPrivate: true, Resolve: resolve("127.0.0.1")}), "http://bank.example"+port); err != nil || reached.Load() != 1 {
		t.Errorf("allowed: %v", err)
	}
}

func resolve(list ...string) func(context.Context, string) ([]netip.Addr, error) {
	return func(context.Context, string) (out []netip.Addr, err error) {
		for _, a := range list {
			out = append(out, netip.MustParseAddr(a))
		}
		return out, nil
	}
}

// A name that answers with a public address first and a private one afterwards gains
// nothing: exactly what was checked is dialled.
func TestANameIsResolvedOnceForAConnection(t *testing.T) {
	t.Parallel()
	url, reached := serve(t, func(http.ResponseWriter, *http.Request) {})
	calls := 0
	c := outbound.New(outbound.Options{Patience: 300 * time.Millisecond, Resolve: func(context.Context, string) ([]netip.Addr, error) {
		if calls++; calls == 1 {
			return []netip.Addr{netip.MustParseAddr("192.88.99.1")}, nil // public, and nobody answers
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}})
	if _, err := get(t, c, "http://bank.example"+url[strings.LastIndex(url, ":"):]); err == nil {
		t.Error("something answered")
	}
	if calls != 1 || reached.Load() != 0 {
		t.Errorf("resolved %d times, reached %d times", calls, reached.Load())
	}
}

func TestARedirectIsAnAnswer(t *testing.T) {
	t.Parallel()
	elsewhere, reached := serve(t, func(http.ResponseWriter, *http.Request) {})
	url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere, http.StatusFound) })
	got, err := get(t, outbound.New(outbound.Options{AllowPrivate: true}), url)
	if err != nil || got.Status != 302 || reached.Load() != 0 {
		t.Errorf("%d, %v, followed %d times", got.Status, err, reached.Load())
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	sent := &atomic.Int64{}
	url, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/exact":
			_, _ = io.WriteString(w, strings.Repeat("x", outbound.MaxBody))
		case "/gigabyte":
			block := strings.Repeat("x", 1<<20)
			for range 1 << 10 {
				if _, err := io.WriteString(w, block); err != nil {
					return
				}
				sent.Add(1)
			}
		case "/cut":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "x")
		case "/loris":
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(20 * time.Millisecond)
			}
		}
	})
	c := outbound.New(outbound.Options{AllowPrivate: true})
	if got, err := get(t, c, url+"/exact"); err != nil || len(got.Body) != outbound.MaxBody {
		t.Errorf("exactly the limit: %d bytes, %v", len(got.Body), err)
	}
	if got, err := get(t, c, url+"/gigabyte"); !errors.Is(err, outbound.ErrTooLarge) || len(got.Body) != outbound.MaxBody || got.Status != 200 {
		t.Errorf("a gigabyte: %d bytes kept, %v", len(got.Body), err)
	}
	if n := sent.Load(); n > 64 { // the buffers of both ends
		t.Errorf("%d MB of the gigabyte were sent", n)
	}
	if _, err := get(t, c, url+"/cut"); !errors.Is(err, outbound.ErrCut) {
		t.Errorf("cut off: %v", err)
	}
	short := outbound.New(outbound.Options{AllowPrivate: true, Patience: 200 * time.Millisecond})
	begun := time.Now()
	if _, err := get(t, short, url+"/loris"); !errors.Is(err, outbound.ErrTimeout) || time.Since(begun) > 5*time.Second {
		t.Errorf("a slow loris: %v after %s", err, time.Since(begun))
	}
}

// What net/http says about a failure holds the whole URL.
func TestErrorsTellNoURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]error{
		"http://127.0.0.1:1/?token=zz91":     outbound.ErrUnreachable,
		"http://nowhere.invalid/?token=zz91": outbound.ErrName,
	} {
		c := outbound.New(outbound.Options{AllowPrivate: true})
		if _, err := get(t, c, url); !errors.Is(err, want) || strings.Contains(err.Error(), "zz91") {
			t.Errorf("%s: %v", url, err)
		}
	}
	tls := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(tls.Close)
	if _, err := get(t, outbound.New(outbound.Options{AllowPrivate: true}), tls.URL); !errors.Is(err, outbound.ErrCertificate) {
		t.Errorf("an unknown authority: %v", err)
	}
}
