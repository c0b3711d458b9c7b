package main

import (
	"log/slog"
	"net/url"
	"strings"
)

// environment is the part of the configuration that is not a flag: secrets, which a
// command line would show to every user of the machine, and what belongs to a place
// rather than to a call.
type environment struct {
	DatabaseURL         secret // DATABASE_URL
	Place               string // QUITTANCE_ENVIRONMENT
	BootstrapAdminToken secret // QUITTANCE_BOOTSTRAP_ADMIN_TOKEN
	BootstrapAgentToken secret // QUITTANCE_BOOTSTRAP_AGENT_TOKEN
}

func environmentOf(getenv func(string) string) environment {
	return environment{
		DatabaseURL:         secret(getenv("DATABASE_URL")),
		Place:               getenv("QUITTANCE_ENVIRONMENT"),
		BootstrapAdminToken: secret(getenv("QUITTANCE_BOOTSTRAP_ADMIN_TOKEN")),
		BootstrapAgentToken: secret(getenv("QUITTANCE_BOOTSTRAP_AGENT_TOKEN")),
	}
}

// dataFlag is the place of the embedded database, for every command that needs one.
type dataFlag struct {
	Data string `help:"Folder of the embedded database, used without DATABASE_URL. Default: /var/lib/quittance for root, ~/.local/share/quittance otherwise." type:"path" placeholder:"DIR"`
}

// again is how another command is told of the same database, with a space before it; ""
// where the environment tells it, or nothing has to.
func (f dataFlag) again(env environment) string {
	if f.Data == "" || env.DatabaseURL != "" {
		return ""
	}
	return " --data " + f.Data
}

// anchorFlag is where the head of the sealed log is kept outside the database.
type anchorFlag struct {
	Anchor string `help:"File outside the database that names the newest sealed block of the log; off keeps none. Default: in --data." placeholder:"FILE"`
}

// config is all that serve is told.
type config struct {
	dataFlag
	anchorFlag
	Listen    string   `help:"Address to listen on (${default})." default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
	Policy    string   `help:"The policy file; read again on SIGHUP." type:"existingfile" placeholder:"FILE"`
	PublicURL string   `help:"The address people and agents use, when a proxy stands in front." placeholder:"URL"`
	Proxies   []string `help:"Addresses and ranges of proxies in front (such as 10.0.0.0/8): what they say in X-Forwarded-For is believed." placeholder:"ADDRESS"`
	Restored  bool     `help:"This database was restored from a backup: treat what is open as unknown until a person has acknowledged the gap."`

	environment `kong:"-"`
}

// check finds what cannot work, before anything is started.
func (c *config) check() error {
	if c.DatabaseURL != "" && c.Place == "" {
		return usagef("QUITTANCE_ENVIRONMENT is not set: with DATABASE_URL it has to name this place (such as production or staging), so that a copy of the database started elsewhere is noticed")
	}
	if c.PublicURL != "" {
		u, err := url.Parse(c.PublicURL)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			return usagef("--public-url is not of the form https://host or https://host:port")
		}
		c.PublicURL = u.Scheme + "://" + u.Host
	}
	return nil
}

// LogValue is the configuration as it is printed at the start.
func (c *config) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("listen", c.Listen),
		slog.String("database", describeDatabase(c.DatabaseURL)),
		slog.String("data", c.Data),
		slog.String("anchor", c.Anchor),
		slog.String("policy", c.Policy),
		slog.String("public_url", c.PublicURL),
		slog.Any("proxies", c.Proxies),
		slog.String("environment", c.Place),
		slog.Bool("restored", c.Restored),
		slog.Any("bootstrap_admin_token", c.BootstrapAdminToken),
		slog.Any("bootstrap_agent_token", c.BootstrapAgentToken),
	)
}

// secret is a string that no print shows. Convert it to string to use it.
type secret string

func (s secret) String() string {
	if s == "" {
		return "not set"
	}
	return "set"
}

// GoString covers %#v.
func (s secret) GoString() string { return s.String() }

// LogValue covers slog.
func (s secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText covers encoders.
func (s secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// describeDatabase names a database by the parts of its URL that are no secret. A
// password may also hide in a parameter, so nothing is taken that is not known.
func describeDatabase(dsn secret) string {
	if dsn == "" {
		return "embedded"
	}
	u, err := url.Parse(string(dsn))
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return "as in DATABASE_URL"
	}
	host := u.Host
	if h := u.Query().Get("host"); h != "" {
		host = h
	}
	return "postgres://" + host + u.Path
}
