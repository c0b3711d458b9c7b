// Package outbound makes requests to addresses that a policy names. An address inside
// our own network is refused, a name is resolved once for each connection and exactly
// what was checked is dialled, nothing is followed elsewhere, and no answer is read
// further than its limit.
package outbound

import (
	"errors"
	"net/netip"
	"strings"
)

// ErrPrivate is returned for an address that is not on the public internet.
var ErrPrivate = errors.New("the address is private, loopback or link-local")

// notPublic are ranges that netip has no word for.
var notPublic = func() (list []netip.Prefix) {
	for _, p := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "fec0::/10",
	} {
		list = append(list, netip.MustParsePrefix(p))
	}
	return list
}()

// Public says whether an address is on the public internet. Ranges that carry another
// address inside (NAT64, 6to4, Teredo) are not.
func Public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsValid() || a.IsLoopback() || a.IsPrivate() || a.IsUnspecified() || a.IsMulticast() ||
		a.IsLinkLocalUnicast() || a.IsInterfaceLocalMulticast() {
		return false
	}
	for _, p := range notPublic {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// PublicName says no to a host that cannot be on the public internet, by its spelling
// alone: an address literal, localhost. Every other name is checked when it is dialled.
func PublicName(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || host == "" {
		return false
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return Public(a)
	}
	return true
}
