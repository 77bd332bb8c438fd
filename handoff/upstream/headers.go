package upstream

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"unicode"

	"github.com/agent-on-demand/aod/internal/secrets"
)

// staysBehind are the headers that no upstream gets: those of one connection, and those by
// which a request says something else than its line or whence it comes. All names are compared as
// plain writes them.
var staysBehind = []string{
	"accept-encoding", "connection", "content-length", "expect", "host", "keep-alive", "te", "trailer",
	"transfer-encoding", "upgrade", "via",
	"front-end-https", "x-host", "x-scheme", "x-uri", "x-url", "x-url-scheme",
}

// partsBehind are parts of the names of further ones: of those that hold credentials, and of the
// many by which proxies say who asked them for what.
var partsBehind = []string{
	"auth", "cookie", "token", "secret", "credential", "password", "signature", "api-key", "apikey", "access-key",
	"subscription-key",
	"forwarded", "http-method", "original", "override", "proxy", "remote-", "rewrite", "x-envoy-",
	"client-cert", "client-ip", "client-verify", "clientip", "connecting-ip", "originating-ip", "real-ip", "user-ip",
}

// plain is a header's name as a server may read it: to many, each character that is neither a
// letter nor a digit is the same.
func plain(name string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			return unicode.ToLower(c)
		}
		return '-'
	}, name)
}

// forwarded are the headers of a request that an upstream gets: all but those of the
// connection, credentials of any kind, and that of its own key.
func forwarded(from http.Header, own string) http.Header {
	h := make(http.Header, len(from))
	dropped := listed(from)
	for name, values := range from {
		if !slices.Contains(dropped, name) && !staysHere(plain(name), plain(own)) {
			h[name] = slices.Clone(values)
		}
	}
	if h.Get("User-Agent") == "" {
		h.Set("User-Agent", "aod")
	}
	h.Set("Accept-Encoding", "identity") // what comes is looked through for the key
	return h
}

func staysHere(name, own string) bool {
	return name == own || slices.Contains(staysBehind, name) ||
		slices.ContainsFunc(partsBehind, func(part string) bool { return strings.Contains(name, part) })
}

// listed are the headers that Connection names.
func listed(h http.Header) []string {
	var names []string
	for _, line := range h.Values("Connection") {
		for _, name := range strings.Split(line, ",") {
			names = append(names, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)))
		}
	}
	return names
}

// withheld are the headers of an answer that no caller gets.
var withheld = []string{
	"Alt-Svc", "Connection", "Keep-Alive", "Location", "Proxy-Authenticate", "Proxy-Authentication-Info", "Refresh",
	"Set-Cookie", "Set-Cookie2",
	"Strict-Transport-Security", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// isEncoded reports whether the bytes of an answer are not those of its content.
func isEncoded(h http.Header) bool {
	return slices.ContainsFunc(h.Values("Content-Encoding"), func(coding string) bool {
		return coding != "" && !strings.EqualFold(coding, "identity")
	})
}

// passOn copies the headers of an answer, but for those that hold the key.
func passOn(to, from http.Header, key secrets.Secret) {
	dropped := listed(from)
	for name, values := range from {
		if slices.Contains(withheld, name) || slices.Contains(dropped, name) || quotes(values, key) {
			continue
		}
		to[name] = slices.Clone(values)
	}
}

// quotes reports whether a header's values hold the key.
func quotes(values []string, key secrets.Secret) bool {
	return slices.ContainsFunc(values, func(v string) bool { return key.In([]byte(v)) })
}
