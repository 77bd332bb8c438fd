package upstream

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// staysBehind are the headers that no upstream gets: those of one connection, and those by
// which a request says something else than its line or whence it comes.
var staysBehind = []string{
	"Accept-Encoding", "Connection", "Content-Length", "Expect", "Forwarded", "Host", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Via",
	"X-Http-Method", "X-Http-Method-Override", "X-Method-Override", "X-Original-Url", "X-Original-Uri", "X-Rewrite-Url", "X-Real-Ip",
}

// credentials are parts of names of headers that hold some.
var credentials = []string{"auth", "cookie", "token", "secret", "credential", "password", "signature", "api-key", "apikey", "api_key", "access-key", "subscription-key"}

// forwarded are the headers of a request that an upstream gets: all but those of the
// connection, credentials of any kind, and that of its own key.
func forwarded(from http.Header, own string) http.Header {
	h := make(http.Header, len(from))
	dropped := listed(from)
	for name, values := range from {
		if !slices.Contains(dropped, name) && !staysHere(name, own) {
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
	if slices.Contains(staysBehind, name) || strings.EqualFold(name, own) || strings.HasPrefix(name, "Proxy-") || strings.HasPrefix(name, "X-Forwarded-") {
		return true
	}
	lower := strings.ToLower(name)
	return slices.ContainsFunc(credentials, func(part string) bool { return strings.Contains(lower, part) })
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
	"Alt-Svc", "Connection", "Keep-Alive", "Location", "Proxy-Authenticate", "Proxy-Authentication-Info", "Refresh", "Set-Cookie", "Set-Cookie2",
	"Strict-Transport-Security", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// passOn copies the headers of an answer, but for those that hold the key.
func passOn(to, from http.Header, key string) {
	dropped := listed(from)
	for name, values := range from {
		if slices.Contains(withheld, name) || slices.Contains(dropped, name) || quotes(values, key) {
			continue
		}
		to[name] = slices.Clone(values)
	}
}

// quotes reports whether a header's values hold the key.
func quotes(values []string, key string) bool {
	return key != "" && slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, key) })
}
