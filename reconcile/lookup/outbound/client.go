package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// Limits of one request.
const (
	MaxBody  = 1 << 20          // bytes of an answer, unpacked
	Patience = 10 * time.Second // from dialling to the answer's last byte
)

// ErrTooLarge is returned for an answer longer than [MaxBody], with so much of it.
var ErrTooLarge = errors.New("the answer is larger than 1 MiB")

// Client sends requests. Safe for concurrent use.
type Client struct {
	http     *http.Client
	patience time.Duration
}

// Options of a client.
type Options struct {
	AllowPrivate bool
	TLS          *tls.Config   // nil for the system's roots and no certificate of our own
	Patience     time.Duration // 0 is Patience
	// Resolve replaces the system's resolver, for tests.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
}

// New makes a client.
func New(o Options) *Client {
	if o.Resolve == nil {
		o.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if o.Patience == 0 {
		o.Patience = Patience
	}
	d := dialer{o}
	return &Client{
		patience: o.Patience,
		http: &http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: &http.Transport{
				Proxy:                  nil, // one would resolve the name again, out of our sight
				DialContext:            d.dial,
				TLSClientConfig:        o.TLS,
				TLSHandshakeTimeout:    5 * time.Second,
				MaxIdleConnsPerHost:    32,
				IdleConnTimeout:        90 * time.Second,
				MaxResponseHeaderBytes: 64 << 10,
				ForceAttemptHTTP2:      true,
			},
		},
	}
}

// Response is a whole answer.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do sends a request and reads the whole answer, within the limits. A redirect is an
// answer like any other. The error is [ErrPrivate], [ErrTooLarge], a time-out, or says
// nothing but which step failed.
func (c *Client) Do(ctx context.Context, r *http.Request) (Response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	got, err := c.http.Do(r.WithContext(ctx))
	if err != nil {
		return Response{}, cause(ctx, err)
	}
	defer got.Body.Close()
	body, err := io.ReadAll(io.LimitReader(got.Body, MaxBody+1))
	answer := Response{Status: got.StatusCode, Header: got.Header}
	switch {
	case err != nil:
		return answer, cause(ctx, err)
	case len(body) > MaxBody:
		answer.Body = body[:MaxBody]
		return answer, ErrTooLarge
	}
	answer.Body = body
	return answer, nil
}

// Errors that a caller may tell apart from "unreachable".
var (
	ErrTimeout     = errors.New("no whole answer came in time")
	ErrCut         = errors.New("the answer broke off")
	ErrCertificate = errors.New("the TLS certificate does not prove the host")
	ErrName        = errors.New("the host's name could not be resolved")
	ErrUnreachable = errors.New("no connection could be made")
)

// cause reduces an error to what may be shown: net/http's hold the whole URL.
func cause(ctx context.Context, err error) error {
	var timeout interface{ Timeout() bool }
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, ErrPrivate):
		return ErrPrivate
	case errors.Is(ctx.Err(), context.Canceled):
		return context.Canceled
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		return ErrTimeout
	case errors.As(err, &name):
		return ErrName
	case errors.As(err, &certificate):
		return ErrCertificate
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return ErrCut
	}
	return ErrUnreachable
}

type dialer struct{ Options }

// dial resolves the host, checks every address it has, and dials those and nothing else:
// a name that is resolved twice can answer differently the second time.
func (d dialer) dial(ctx context.Context, network, target string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		return nil, err
	}
	var addresses []netip.Addr
	if literal, err := netip.ParseAddr(host); err == nil {
		addresses = []netip.Addr{literal}
	} else if addresses, err = d.Resolve(ctx, host); err != nil {
		return nil, err
	}
	for _, a := range addresses {
		if !d.AllowPrivate && !Public(a) {
			return nil, ErrPrivate
		}
	}
	failed := error(&net.DNSError{Err: "no address", Name: host})
	for _, a := range addresses {
		conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, net.JoinHostPort(a.Unmap().String(), port))
		if err == nil {
			return conn, nil
		}
		failed = err
	}
	return nil, failed
}
