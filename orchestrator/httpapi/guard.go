package httpapi

import (
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// guard refuses requests that a browser could be made to send: those with a foreign name
// that was pointed at this address (DNS rebinding), and those of foreign pages.
type guard struct {
	hosts   []string // lower case
	origins []string
	routes  *routes
	own     *http.CrossOriginProtection
}

func newGuard(opts Options, known *routes) guard {
	g := guard{origins: opts.Origins, routes: known, own: http.NewCrossOriginProtection()}
	for _, host := range append([]string{opts.Listen}, opts.Hosts...) {
		if host != "" {
			g.hosts = append(g.hosts, plainHost(host))
		}
	}
	return g
}

// guarded refuses what the guard refuses.
func (g guard) guarded(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r, header := c.Request(), c.Response().Header()
		header.Set(echo.HeaderXContentTypeOptions, "nosniff")
		header.Set(echo.HeaderCacheControl, "no-store")
		if !g.knows(r.Host) {
			return fault.New(fault.Forbidden, "this server does not answer to the name in the request's Host header").
				WithHint("use its address, or add the name to the setting `hosts`")
		}
		if row, _ := g.routes.of(c); row.traits&cookie != 0 {
			if err := g.own.Check(r); err != nil {
				return fault.New(fault.Forbidden, "only this server's own page may change something here").
					WithHint("open the page at the address by which this server is known")
			}
			return next(c)
		}
		origin := r.Header.Get(echo.HeaderOrigin)
		if origin == "" {
			return next(c)
		}
		if !slices.Contains(g.origins, origin) {
			return fault.New(fault.Forbidden, "pages of this origin may not call this server").
				WithHint("add the origin to the setting `origins`")
		}
		allowOrigin(header, origin)
		if isPreflight(r) {
			return preflight(c)
		}
		return next(c)
	}
}

// knows reports whether a Host header may name this server.
func (g guard) knows(header string) bool {
	host := plainHost(header)
	name := withoutPort(host)
	return httpwire.IsLoopback(name) || slices.Contains(g.hosts, host) || slices.Contains(g.hosts, name)
}

func plainHost(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// withoutPort returns the name or the IP address, an IP address without brackets.
func withoutPort(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.TrimSuffix(host, ".")
}

func allowOrigin(header http.Header, origin string) {
	header.Set(echo.HeaderAccessControlAllowOrigin, origin)
	header.Add(echo.HeaderVary, echo.HeaderOrigin)
	header.Set(echo.HeaderAccessControlExposeHeaders,
		"Location, Idempotent-Replayed, AOD-Run, ETag, Retry-After, Content-Disposition, Mcp-Session-Id")
}

func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get(echo.HeaderAccessControlRequestMethod) != ""
}

// preflight answers a browser's preflight request, which carries no token.
func preflight(c echo.Context) error {
	header := c.Response().Header()
	header.Set(echo.HeaderAccessControlAllowMethods, "GET, HEAD, POST, PUT, DELETE")
	header.Set(echo.HeaderAccessControlAllowHeaders,
		"AOD-On-Disconnect, Authorization, Content-Type, Idempotency-Key, If-None-Match, Last-Event-ID, Mcp-Method, "+
			"Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id, Range, Traceparent")
	header.Set(echo.HeaderAccessControlMaxAge, "600")
	return c.NoContent(http.StatusNoContent)
}
