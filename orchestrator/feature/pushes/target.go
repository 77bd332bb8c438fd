package pushes

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/egress"
)

// The most bytes of what a client says of a receiver.
const (
	maxID     = 128
	maxURL    = 2048
	maxSecret = 4096
)

// Approach is how receivers are approached, and what that is called.
type Approach struct {
	Door    *egress.Door
	Noun    string // "push" or "webhook"
	Setting string // that names hosts at addresses which aren't public
}

// The rules that an address can break. Refusals name them; those of a webhook begin with "webhook".
const (
	RuleURL     = "push_url"     // an http or https address without user, password or fragment
	RuleTLS     = "push_https"   // only what push_private names is spoken to without TLS
	RulePrivate = "push_private" // a public address, or one that push_private names
)

// named is the approach to receivers that clients of runs name.
func named(door *egress.Door) Approach { return Approach{door, "push", "a2a.push_private"} }

// Target is a receiver, and what it wants to be shown. Its texts are secret.
type Target struct {
	URL         string
	Host        string // of URL, in lower case
	Token       string // "" for none
	Scheme      string // "Bearer", "Basic"; "" for none
	Credentials string
}

// String hides the receiver.
func (Target) String() string { return "(a receiver)" }

// LogValue hides the receiver.
func (t Target) LogValue() slog.Value { return slog.StringValue(t.String()) }

// GoString hides the receiver.
func (t Target) GoString() string { return t.String() }

// TargetOf checks what a client says of a receiver, and where its name leads now. The error is an
// Input fault whose findings name the rules, and nothing that was said or looked up.
func TargetOf(ctx context.Context, c api.PushConfig, door *egress.Door) (Target, error) {
	t := Target{URL: c.URL, Token: c.Token, Credentials: c.Credentials}
	var findings []fault.Finding
	report := func(pointer, message, hint string) {
		findings = append(findings, fault.Finding{Pointer: pointer, Message: message, Hint: hint})
	}
	if len(c.ID) > maxID || !isVisible(c.ID) {
		report("/id", "it isn't up to 128 visible ASCII characters", "use a UUID, or leave it out")
	}
	if len(c.Token) > maxSecret || !isVisible(c.Token) {
		report("/token", "it isn't up to 4096 visible ASCII characters", "shorten or encode it")
	}
	switch {
	case c.Credentials == "" && c.Scheme == "":
	case strings.EqualFold(c.Scheme, "bearer"):
		t.Scheme = "Bearer"
	case strings.EqualFold(c.Scheme, "basic"):
		t.Scheme = "Basic"
	default:
		report("/scheme", "it is neither Bearer nor Basic", "authenticate by one of them, or by a token")
	}
	if len(c.Credentials) > maxSecret || !isVisible(c.Credentials) {
		report("/credentials", "they aren't up to 4096 visible ASCII characters",
			"give them as they stand in the header Authorization, behind the scheme")
	}
	var err error
	if t.Host, err = named(door).hostOf(ctx, c.URL); err != nil {
		findings = append(findings, fault.Public(err).Findings...)
	}
	if len(findings) > 0 {
		return Target{}, refused(findings)
	}
	return t, nil
}

// refused is the fault of a receiver. Its own words are those of the first finding: not everybody shows the others.
func refused(findings []fault.Finding) error {
	first := findings[0]
	return fault.Wrap(fault.Input, api.ErrReceiver, "the receiver is refused for its %s: %s",
		strings.TrimPrefix(first.Pointer, "/"), first.Message).WithHint("%s", first.Hint).WithFindings(findings)
}

// To checks the address of a receiver, and where its name leads now. The error is as that of TargetOf.
func (a Approach) To(ctx context.Context, address string) (Target, error) {
	host, err := a.hostOf(ctx, address)
	if err != nil {
		return Target{}, refused(fault.Public(err).Findings)
	}
	return Target{URL: address, Host: host}, nil
}

// hostOf checks the address of a receiver and returns its host.
func (a Approach) hostOf(ctx context.Context, address string) (string, error) {
	u, err := url.Parse(address)
	if message, hint := whyNoURL(address, u, err); message != "" {
		return "", a.broken(RuleURL, message, hint)
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if u.Scheme == "http" && !a.Door.Excepts(host) {
		return "", a.broken(RuleTLS, "only https is spoken to this host",
			"write https://; the operator can name hosts for http in "+a.Setting)
	}
	err = a.Door.Check(ctx, net.JoinHostPort(host, portOf(u)))
	switch {
	case fault.Is(err, fault.Forbidden), isUnknown(err) && !a.Door.Excepts(host):
		return "", a.broken(RulePrivate, "no public address of its host is known",
			"name a host at a public address; the operator can name others in "+a.Setting)
	case fault.Is(err, fault.BadRequest):
		return "", a.broken(RuleURL, "it names no host, or no port from 1 to 65535",
			"name a host, such as hooks.example.com")
	case errors.Is(ctx.Err(), context.Canceled):
		return "", context.Cause(ctx)
	}
	return host, nil // one that can't be looked up now may be there later
}

// isUnknown reports whether a name is none. It is refused as one at a private address is: a client isn't told which
// names the network here has.
func isUnknown(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}

// whyNoURL says why a text isn't the address of a receiver, and what to do about it; "": it is.
func whyNoURL(address string, u *url.URL, err error) (message, hint string) {
	switch {
	case address == "":
		return "it is missing", "name the receiver's address, which begins with https://"
	case len(address) > maxURL:
		return "it has more than 2048 characters", "shorten it"
	case !isVisible(address):
		return "it has a character that isn't visible ASCII", "encode it, such as %20 for a space"
	case err != nil || u.Opaque != "" || u.Host == "" && u.Scheme != "":
		return "it isn't an address", "write https://HOST/PATH"
	case u.Scheme != "http" && u.Scheme != "https":
		return "it doesn't begin with https://", "write https://HOST/PATH"
	case u.User != nil:
		return "it has a user or a password", "give them as credentials, with the scheme Basic"
	case u.Fragment != "":
		return "it has a fragment", "leave out what begins with #"
	}
	return "", ""
}

func portOf(u *url.URL) string {
	usual := "443"
	if u.Scheme == "http" {
		usual = "80"
	}
	return cmp.Or(u.Port(), usual)
}

func (a Approach) broken(rule, message, hint string) error {
	rule = a.Noun + strings.TrimPrefix(rule, "push")
	return fault.New(fault.Input, "the address is refused").
		WithFindings([]fault.Finding{{Pointer: "/url", Message: message + " (" + rule + ")", Hint: hint}})
}

// isVisible reports whether a text is ASCII that can be seen: it may stand in a header.
func isVisible(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// headerToken is where the protocol A2A has a receiver look for its token.
const headerToken = "A2A-Notification-Token"

// show adds what the receiver wants to be shown to the headers of a request.
func (t Target) show(h http.Header) {
	if t.Token != "" {
		h.Set(headerToken, t.Token)
	}
	if t.Scheme != "" && t.Credentials != "" {
		h.Set("Authorization", t.Scheme+" "+t.Credentials)
	}
}
