package block

import (
	"net/url"

	"github.com/goccy/go-yaml/ast"

	"quittance/reconcile/lookup/outbound"
)

// CheckTarget refuses an address, or the fixed part of one, that must not be asked.
func (b *Block) CheckTarget(n ast.Node, path, text string) bool {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		b.Mistake(n, path, "must be a URL that starts with https://")
	case u.User != nil:
		b.Mistake(n, path, "must not hold credentials: they go into headers")
	case !b.AllowPrivate && !outbound.PublicName(u.Hostname()):
		b.Mistake(n, path, "%s is a private address: allow_private: true allows it for this tool", u.Hostname())
	case !b.AllowPrivate && u.Scheme != "https":
		b.Mistake(n, path, "must start with https://: http:// would send credentials in the clear (allowed with allow_private: true)")
	default:
		return true
	}
	return false
}
