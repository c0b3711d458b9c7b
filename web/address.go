package web

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/labstack/echo/v4"
)

// addressFrom makes the router believe what proxies say of whom they answer, and nobody
// else. Without proxies it is whoever is connected. A proxy is an address or a range.
func addressFrom(proxies []string) (echo.IPExtractor, error) {
	if len(proxies) == 0 {
		return echo.ExtractIPDirect(), nil
	}
	trust := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, text := range proxies {
		text = strings.TrimSpace(text)
		if a, err := netip.ParseAddr(text); err == nil {
			text = netip.PrefixFrom(a, a.BitLen()).String()
		}
		_, network, err := net.ParseCIDR(text)
		if err != nil {
			return nil, fmt.Errorf("%q is no address and no range like 10.0.0.0/8", text)
		}
		trust = append(trust, echo.TrustIPRange(network))
	}
	return echo.ExtractIPFromXFFHeader(trust...), nil
}

// Address is where a request comes from, to count by: an IPv4 address, or the 64 bits of an
// IPv6 one that a single customer is given whole.
func Address(c echo.Context) string {
	a, err := netip.ParseAddr(c.RealIP())
	if err != nil {
		return ""
	}
	if a = a.Unmap().WithZone(""); a.Is4() {
		return a.String()
	}
	network, err := a.Prefix(64)
	if err != nil {
		return ""
	}
	return network.String()
}
