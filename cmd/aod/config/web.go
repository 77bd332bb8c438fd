package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/outside"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

const addressKind = "HOST:PORT"

// address is the server's listen address: HOST:PORT, where no host means every interface.
func address(into *string) single {
	return single{into, addressKind, "write HOST:PORT, such as 127.0.0.1:7070", checkAddress}
}

func checkAddress(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", fmt.Errorf("%s isn't a host and a port", fault.Quote(text))
	}
	if err := checkPort(port); err != nil {
		return "", err
	}
	if host != "" {
		if _, err := checkHost(host); err != nil {
			return "", err
		}
	}
	return text, nil
}

func checkPort(text string) error {
	if n, err := strconv.ParseUint(text, 10, 16); err != nil || strconv.FormatUint(n, 10) != text {
		return fmt.Errorf("%s isn't a port from 0 to 65535", fault.Quote(text))
	}
	return nil
}

// isLoopback reports whether an address is reachable from this machine alone.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// hosts is a list of names and IP addresses.
func hosts(into *[]string) list {
	return list{into, "hosts", "write a list of names without scheme and port, such as aod.example.com", ",", checkHost}
}

var hostRule = lazyregexp.New(`^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$`)

// checkHost returns a host's name or IP address in lower case, an IP address without
// brackets.
func checkHost(text string) (string, error) {
	host := strings.ToLower(text)
	if ip, err := netip.ParseAddr(host); err == nil && ip.Zone() == "" {
		return host, nil
	}
	if len(host) > 253 || !hostRule().MatchString(host) {
		return "", fmt.Errorf("%s isn't a host's name", fault.Quote(text))
	}
	return host, nil
}

// origins is a list of web origins (RFC 6454), as browsers write them.
func origins(into *[]string) list {
	return list{
		into, "origins", "write a list of SCHEME://HOST or SCHEME://HOST:PORT, such as https://app.example.com",
		",", checkOrigin,
	}
}

var defaultPorts = map[string]string{"http": ":80", "https": ":443"}

func checkOrigin(text string) (string, error) {
	if text == "*" {
		return "", errors.New("* would let every web page call; name those that may")
	}
	u, err := url.Parse(strings.ToLower(text))
	if err != nil || defaultPorts[u.Scheme] == "" {
		return "", fmt.Errorf("%s isn't a web origin", fault.Quote(text))
	}
	if u.User != nil || u.Path != "" || u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#") {
		return "", fmt.Errorf("%s has more in it than scheme, host and port", fault.Quote(text))
	}
	if _, err := checkHost(u.Hostname()); err != nil {
		return "", err
	}
	if u.Port() != "" || strings.HasSuffix(u.Host, ":") {
		if err := checkPort(u.Port()); err != nil {
			return "", err
		}
	}
	return u.Scheme + "://" + strings.TrimSuffix(u.Host, defaultPorts[u.Scheme]), nil
}

// egressRules is a list of hosts that may be reached by name.
func egressRules(into *[]string) list {
	return hostList(into, "write a list of hosts, such as [api.example.com, \"*.example.org\"]", outside.ParseRule)
}

// egressExceptions is a list of hosts that may be at addresses which aren't public.
func egressExceptions(into *[]string) list {
	return hostList(into,
		"write a list of hosts, each alone or with its address, such as [wiki.internal, db.internal=10.0.0.5]",
		outside.ParseException)
}

func hostList[T fmt.Stringer](into *[]string, advice string, parse func(string) (T, error)) list {
	return list{into, "hosts", advice, ",", func(text string) (string, error) {
		host, err := parse(text)
		if err != nil {
			return "", errors.New(fault.Public(err).Msg)
		}
		return host.String(), nil
	}}
}

// hostsOf reads what a hostList has checked.
func hostsOf[T any](texts []string, parse func(string) (T, error)) []T {
	all := make([]T, 0, len(texts))
	for _, text := range texts {
		if host, err := parse(text); err == nil {
			all = append(all, host)
		}
	}
	return all
}

// EgressRules returns the hosts that the policy lets units reach; never nil.
func (p PolicyConfig) EgressRules() outside.List { return rulesOf(p.Egress) }

func rulesOf(texts []string) outside.List { return hostsOf(texts, outside.ParseRule) }

// EgressExceptions returns the hosts that may be at addresses which aren't public.
func (c *Config) EgressExceptions() []outside.Exception {
	return hostsOf(c.EgressPrivate, outside.ParseException)
}

// PushExceptions returns the hosts of receivers that may be at addresses which aren't public.
func (a A2AConfig) PushExceptions() []outside.Exception {
	return hostsOf(a.PushPrivate, outside.ParseException)
}
