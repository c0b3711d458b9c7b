package ledger

import (
	"net"
	"net/url"
	"strings"
)

// manyHosts rewrites a URL that names several servers the way libpq and the tools that
// set up standbys write it, postgres://a:1,b:2/name, to the one that our driver reads:
// ?host=a,b&port=1,2. Anything else stays as it is.
func manyHosts(dsn string) string {
	scheme, rest, ok := strings.Cut(dsn, "://")
	if !ok {
		return dsn
	}
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	user, list := "", authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user, list = authority[:i+1], authority[i+1:]
	}
	if !strings.Contains(list, ",") {
		return dsn
	}
	var hosts, ports []string
	for _, h := range strings.Split(list, ",") {
		host, port, err := net.SplitHostPort(h)
		if err != nil {
			host, port = strings.Trim(h, "[]"), "5432"
		}
		hosts, ports = append(hosts, host), append(ports, port)
	}
	u, err := url.Parse(scheme + "://" + user + tail)
	if err != nil {
		return dsn
	}
	q := u.Query()
	q.Set("host", strings.Join(hosts, ","))
	q.Set("port", strings.Join(ports, ","))
	u.RawQuery = q.Encode()
	return u.String()
}
