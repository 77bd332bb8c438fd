package outside

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
)

// PortTLS and PortPlain are the ports of rules that name none.
const (
	PortTLS   = 443
	PortPlain = 80
)

const plainPrefix = "http://"

// Rule is an entry of a list: a host with a port, and how it may be spoken to.
type Rule struct {
	Host  string // lower case
	Below bool   // the names below Host, and not Host itself: *.host
	Port  uint16
	Plain bool // HTTP without TLS; else TLS alone
}

// ParseRule reads host, *.host, host:port or any of them after http://. The error is an Input
// fault that quotes the text.
func ParseRule(text string) (Rule, error) {
	rest, plain := strings.CutPrefix(text, plainPrefix)
	r := Rule{Port: PortTLS, Plain: plain}
	if plain {
		r.Port = PortPlain
	}
	if strings.Contains(rest, "/") {
		return Rule{}, wrong(text, "is more than a host",
			"write api.example.com, *.example.com, api.example.com:8443, or http://api.example.com for HTTP "+
				"without TLS")
	}
	host, port, hasPort := CutPort(rest)
	if hasPort {
		var ok bool
		if r.Port, ok = ParsePort(port); !ok {
			return Rule{}, wrong(text, "has no port from 1 to 65535", "write it as api.example.com:8443")
		}
	}
	host, r.Below = strings.CutPrefix(host, "*.")
	r.Host = strings.ToLower(host)
	if why := WhyNoHost(r.Host); why != "" {
		return Rule{}, wrong(text, why, "name a host, such as api.example.com")
	}
	if r.Below && !strings.Contains(r.Host, ".") {
		return Rule{}, wrong(text, "covers a whole top-level domain",
			"write at least two parts behind *., such as *.example.com")
	}
	return r, nil
}

func wrong(text, why, hint string) error {
	return fault.New(fault.Input, "%s %s", fault.Quote(text), why).WithHint("%s", hint)
}

// String returns the rule as ParseRule reads it, without a port that goes without saying.
func (r Rule) String() string {
	text := r.Host
	if r.Below {
		text = "*." + text
	}
	usual := uint16(PortTLS)
	if r.Plain {
		text, usual = plainPrefix+text, PortPlain
	}
	if r.Port != usual {
		text += ":" + strconv.Itoa(int(r.Port))
	}
	return text
}

// Covers reports whether all that the other rule allows is allowed by this one.
func (r Rule) Covers(other Rule) bool {
	if r.Port != other.Port || r.Plain != other.Plain {
		return false
	}
	if !r.Below {
		return !other.Below && r.Host == other.Host
	}
	return strings.HasSuffix(other.Host, "."+r.Host) || other.Below && other.Host == r.Host
}

// CutPort cuts a text at its last colon. One with several colons is an IPv6 address.
func CutPort(text string) (host, port string, has bool) {
	at := strings.LastIndexByte(text, ':')
	if at < 0 || strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		return text, "", false
	}
	if strings.Contains(text[:at], ":") && !strings.HasPrefix(text, "[") {
		return text, "", false
	}
	return text[:at], text[at+1:], true
}

// ParsePort reads a port from 1 to 65535, as digits alone.
func ParsePort(text string) (uint16, bool) {
	n, err := strconv.ParseUint(text, 10, 16)
	return uint16(n), err == nil && n > 0 && text[0] != '+'
}

const (
	maxHost  = 253
	maxLabel = 63
)

// WhyNoHost says why a text in lower case isn't a name of a host, or returns "".
func WhyNoHost(host string) string {
	switch {
	case host == "" || host == "*":
		return "names no host"
	case len(host) > maxHost:
		return "is longer than a host's name can be"
	case IsAddress(host):
		return "is an address"
	case strings.Contains(host, "*"):
		return "has a * elsewhere than at its beginning"
	}
	for label := range strings.SplitSeq(host, ".") {
		if !isLabel(label) {
			return "isn't a host's name"
		}
	}
	return ""
}

// isLabel reports whether a part of a name has the letters of one. Names in other alphabets are
// written as xn--….
func isLabel(label string) bool {
	if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	return strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// IsAddress reports whether some resolver would take a text for an address: also 127.1, 0x7f.1
// and 2130706433.
func IsAddress(host string) bool {
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	if digits, hex := strings.CutPrefix(last, "0x"); hex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}
