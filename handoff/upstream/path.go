package upstream

import (
	"net/url"
	"path"
	"slices"
	"strings"
)

// cleanPath returns the decoded path of a request below an upstream, "" or beginning with a
// slash, and whether servers agree on where it leads. What they read differently is refused: dot segments, also
// encoded once or twice and with parameters, empty segments, encoded slashes, backslashes and
// control characters.
func cleanPath(escaped string) (clean string, ok bool) {
	decoded, err := url.PathUnescape(escaped)
	if err != nil || strings.Count(decoded, "/") != strings.Count(escaped, "/") {
		return "", false
	}
	if strings.ContainsFunc(decoded, func(c rune) bool { return c < ' ' || c == 0x7f || c == '\\' }) ||
		holdsEncoded(decoded) {
		return "", false
	}
	if decoded == "" {
		return "", true
	}
	if !strings.HasPrefix(decoded, "/") || strings.Contains(decoded, "//") {
		return "", false
	}
	for _, segment := range strings.Split(decoded, "/") {
		name, _, _ := strings.Cut(segment, ";")
		if strings.Trim(name, " ") == "." || strings.Trim(name, " ") == ".." {
			return "", false
		}
	}
	return decoded, true
}

// holdsEncoded reports whether a decoded path decodes once more to something that leads
// elsewhere.
func holdsEncoded(decoded string) bool {
	lower := strings.ToLower(decoded)
	codes := []string{"%2e", "%2f", "%5c", "%25", "%00"}
	return slices.ContainsFunc(codes, func(code string) bool { return strings.Contains(lower, code) })
}

// isBelow reports whether a clean path is a prefix or lies below it, by whole segments.
func isBelow(clean, prefix string) bool {
	prefix = strings.TrimSuffix(prefix, "/")
	rest, found := strings.CutPrefix(clean, prefix)
	return found && (rest == "" || rest[0] == '/')
}

// allows reports whether a clean path is among those that are passed on.
func (s *service) allows(clean string) bool {
	return s.Paths == nil || slices.ContainsFunc(s.Paths, func(prefix string) bool { return isBelow(clean, prefix) })
}

// target is the address of a clean path at the service.
func (s *service) target(clean, query string) *url.URL {
	u := *s.base
	u.Path, u.RawPath = strings.TrimSuffix(s.base.Path, "/")+clean, ""
	if u.Path == "" {
		u.Path = "/"
	}
	u.RawQuery = query
	return &u
}

// backInside returns the address by which the caller reaches where a redirect leads; "" where
// that is outside of the service.
func (s *service) backInside(from *url.URL, location string) string {
	to, err := from.Parse(location)
	if err != nil || to.Scheme != s.base.Scheme || to.Host != s.base.Host || to.User != nil {
		return ""
	}
	rest, found := strings.CutPrefix(to.EscapedPath(), strings.TrimSuffix(s.base.EscapedPath(), "/"))
	clean, ok := cleanPath(rest)
	if !found || !ok || !s.allows(clean) {
		return ""
	}
	back := url.URL{Path: path.Join(Path, s.name), RawQuery: to.RawQuery, Fragment: to.Fragment}
	back.Path += clean
	return back.String()
}
