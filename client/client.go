package client

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Client talks to one server as the owner of one token. Safe for concurrent use.
type Client struct {
	base  string
	token string
	http  *http.Client
	log   *slog.Logger

	worker     string
	patience   time.Duration // how long a begin, an open or a checkpoint is tried
	finishWait time.Duration // how long Do tries to deliver an outcome itself
	tryTimeout time.Duration // one try of one request
	maxResult  int           // a larger result is sent as size and digest
	spool      *spool
	deliverer  *deliverer
}

// Option changes one default of [New].
type Option func(*Client)

// WithHTTPClient sends through h, whose transport decides about TLS and proxies.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// WithWorker names this process to people; the host name and process id otherwise.
func WithWorker(name string) Option { return func(c *Client) { c.worker = name } }

// WithSpool keeps outcomes that could not be delivered in dir, which should survive
// the process and, in a container, be on a volume. One folder serves one account of
// one server: everything in it is delivered there. The default is a folder for this
// server and token below quittance/spool in the user's cache folder. The files hold
// results as the tools returned them; only their owner can read them.
func WithSpool(dir string) Option { return func(c *Client) { c.spool = &spool{dir: dir} } }

// WithPatience sets how long a request is repeated when the server cannot be reached
// before an error is returned; 30 s by default. Outcomes are repeated for ever.
func WithPatience(d time.Duration) Option { return func(c *Client) { c.patience = d } }

// WithMaxResult sets the size in bytes above which a result is sent as size and
// digest only; 8 MiB by default.
func WithMaxResult(n int) Option { return func(c *Client) { c.maxResult = n } }

// WithLog receives what nobody waits for: outcomes delivered late, heartbeats that
// fail. Nothing is logged by default, and never a body.
func WithLog(log *slog.Logger) Option { return func(c *Client) { c.log = log } }

// New makes a client of the server at url (such as http://127.0.0.1:8080) with an
// agent's or a person's token. It sends nothing yet.
func New(url, token string, opts ...Option) *Client {
	host, _ := os.Hostname()
	c := &Client{
		base:       strings.TrimRight(url, "/"),
		token:      token,
		log:        slog.New(slog.DiscardHandler),
		worker:     fmt.Sprintf("%s/%d", host, os.Getpid()),
		patience:   30 * time.Second,
		finishWait: 10 * time.Second,
		tryTimeout: 15 * time.Second,
		maxResult:  8 << 20,
	}
	for _, o := range opts {
		o(c)
	}
	if c.http == nil {
		c.http = &http.Client{Transport: transport()}
	}
	// A redirect could carry the token elsewhere, or turn a POST into a GET.
	direct := *c.http
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &direct
	if c.spool == nil {
		c.spool = &spool{dir: defaultSpool(c.base, token)}
	}
	c.deliverer = newDeliverer(c)
	return c
}

// idleConns are kept to the server: goroutines call one host, and with the default of two
// the others would dial for each call.
const idleConns = 64

// transport is the default one, proxies from the environment included.
func transport() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport // the program has put its own there
	}
	t = t.Clone()
	t.MaxIdleConnsPerHost = idleConns
	return t
}

// Close stops what runs in the background: heartbeats, so that leases run out, and
// the delivery of outcomes. Those that are still in the spool are delivered by the next
// process that opens a run.
func (c *Client) Close() { c.deliverer.stop() }

// defaultSpool is apart for each server and token, so that an outcome never reaches
// another account.
func defaultSpool(server, token string) string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	owner := sha256.Sum256([]byte(server + "\n" + token))
	return filepath.Join(dir, "quittance", "spool", hex.EncodeToString(owner[:8]))
}

// newID makes an id that no other process makes: attempt ids and decision ids.
func newID() string { return rand.Text() }
