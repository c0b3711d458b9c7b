package policy

import (
	"encoding/base64"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"quittance/reconcile/lookup/outbound"
	"quittance/reconcile/lookup/secret"
	"quittance/reconcile/policy/read"
)

// Webhook is an endpoint of the team's own that is told when a run is ready.
type Webhook struct {
	Name         string
	URL          string
	AllowPrivate bool
	Agents       []string // empty: every agent's runs
	Accounts     []string // empty: every account's

	keys []secret.Text
}

var errEmptyName = errors.New("must not be empty")

// Wants tells whether the endpoint is told of an account's run of an agent.
func (h *Webhook) Wants(account, agent string) bool {
	return (len(h.Accounts) == 0 || slices.Contains(h.Accounts, account)) && (len(h.Agents) == 0 || slices.Contains(h.Agents, agent))
}

// Keys are what it is signed with, for the one place that signs.
func (h *Webhook) Keys() (list [][]byte) {
	for _, k := range h.keys {
		if key, err := signingKey(k.Reveal()); err == nil {
			list = append(list, key)
		}
	}
	return list
}

// signingKey reads a secret of Standard Webhooks: 24 to 64 bytes in base64.
func signingKey(text string) ([]byte, error) {
	return base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "whsec_"))
}

// Webhooks are the declared endpoints, sorted by name.
func (p *Policy) Webhooks() []*Webhook { return p.webhooks }

func (r *reader) webhooks(n ast.Node, path string) (list []*Webhook) {
	for _, e := range r.Entries(n, path) {
		at := read.Join(path, e.Name)
		if e.Name == "" || len(e.Name) > maxToolName {
			r.Mistake(e.Key, path, "an endpoint's name has 1 to %d bytes", maxToolName)
			continue
		}
		list = append(list, r.webhook(e, at))
	}
	slices.SortFunc(list, func(a, b *Webhook) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (r *reader) webhook(e read.Entry, path string) *Webhook {
	before := r.Count()
	f := r.Fields(e.Value, path, "url", "secrets", "agents", "accounts", "allow_private")
	h := &Webhook{Name: e.Name, AllowPrivate: r.Boolean(f["allow_private"], path+".allow_private")}
	h.URL, _ = r.Text(f["url"], path+".url")
	notEmpty := func(s string) error {
		if s == "" {
			return errEmptyName
		}
		return nil
	}
	h.Agents = r.Texts(f["agents"], path+".agents", notEmpty)
	h.Accounts = r.Texts(f["accounts"], path+".accounts", notEmpty)
	for i, item := range r.Items(f["secrets"], path+".secrets") {
		at := path + ".secrets[" + strconv.Itoa(i) + "]"
		was := r.Count()
		key := secret.Need(r.Reader, item, at, secret.NewSet())
		if k, err := signingKey(key.Reveal()); !r.Stored && r.Count() == was && (err != nil || len(k) < 24 || len(k) > 64) {
			r.Mistake(item, at, "must hold a secret of Standard Webhooks: whsec_ and 24 to 64 bytes in base64")
		}
		h.keys = append(h.keys, key)
	}
	if r.Count() > before {
		return h
	}
	where := e.Value
	if where == nil || where.Type() == ast.NullType {
		where = e.Key
	}
	if f["url"] == nil {
		r.Mistake(where, path, "url is missing")
	} else if fault := urlFault(h.URL, h.AllowPrivate); fault != "" {
		r.Mistake(f["url"], path+".url", "%s", fault)
	}
	if len(h.keys) == 0 {
		r.Mistake(where, path, "secrets is missing: without one a receiver cannot tell who sent it")
	}
	return h
}

// urlFault says what is wrong with where something is sent, "" if nothing.
func urlFault(text string, allowPrivate bool) string {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return "must be a URL that starts with https://"
	case u.User != nil:
		return "must not hold credentials"
	case !allowPrivate && !outbound.PublicName(u.Hostname()):
		return u.Hostname() + " is a private address: allow_private: true allows it here"
	case !allowPrivate && u.Scheme != "https":
		return "must start with https:// (http:// is allowed with allow_private: true)"
	}
	return ""
}
