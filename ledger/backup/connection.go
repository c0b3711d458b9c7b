package backup

import (
	"errors"
	"net/url"
	"slices"
)

// Connection says how PostgreSQL's programs reach a database.
type Connection struct{ url, password string }

// ErrNotURL means that the database is named in a way from which a password cannot be
// kept off a command line.
var ErrNotURL = errors.New("the database has to be named by a postgres:// URL")

// libpq are the parameters that PostgreSQL's programs know and that say where and how to
// connect; they refuse any that they do not know, which our driver takes for settings.
var libpq = []string{
	"host", "port", "user", "dbname", "connect_timeout", "sslmode", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslsni",
	"krbsrvname", "gssencmode", "channel_binding", "target_session_attrs", "passfile", "keepalives",
}

// To is the connection of a postgres:// URL.
func To(dsn string) (Connection, error) {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return Connection{}, ErrNotURL
	}
	var c Connection
	if u.User != nil {
		c.password, _ = u.User.Password()
		u.User = url.User(u.User.Username())
	}
	q := u.Query()
	if p := q.Get("password"); p != "" {
		c.password = p
	}
	for name := range q {
		if !slices.Contains(libpq, name) {
			q.Del(name)
		}
	}
	u.RawQuery = q.Encode()
	c.url = u.String()
	return c, nil
}
