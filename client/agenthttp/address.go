package agenthttp

import (
	"net/url"
	"strings"
)

// SameOrigin compares two origins as the web does: scheme, host and port.
func SameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	if port := u.Port(); port != "" || u.Scheme == "" {
		return port
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}
