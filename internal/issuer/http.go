package issuer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

const (
	askTime   = 10 * time.Second
	maxAnswer = 1 << 20  // bytes of an answer of an issuer
	maxHeader = 64 << 10 // likewise, of its headers
)

// newClient returns a client for an issuer. It follows no redirects: a key or a code goes nowhere but where the issuer
// said first.
func newClient(issuer string) *http.Client {
	transport := httpwire.NewTransport()
	transport.MaxResponseHeaderBytes = maxHeader
	return &http.Client{
		Transport: bounded{transport, plain(issuer)}, Timeout: askTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// plain reports whether an issuer is one of this machine without TLS, for trying things.
func plain(issuer string) bool {
	u, err := url.Parse(issuer)
	return err == nil && u.Scheme == "http" && httpwire.IsLoopback(u.Hostname())
}

// bounded is a transport for small answers of hosts with TLS.
type bounded struct {
	next  *http.Transport
	plain bool // without TLS, too, if the host is this machine
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && (!b.plain || !httpwire.IsLoopback(r.URL.Hostname())) {
		return nil, errors.New("an issuer must be asked by https")
	}
	answer, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = &limited{answer.Body, maxAnswer}
	return answer, nil
}

// CloseIdleConnections implements what http.Client looks for.
func (b bounded) CloseIdleConnections() { b.next.CloseIdleConnections() }

// limited is a body that fails beyond some bytes.
type limited struct {
	io.ReadCloser
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left < 0 {
		return 0, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	n, err := l.ReadCloser.Read(p[:min(int64(len(p)), l.left+1)])
	l.left -= int64(n)
	return n, err
}

// Says is what an issuer says of itself: where it is asked for what.
type Says struct {
	Issuer string `json:"issuer"`
	Auth   string `json:"authorization_endpoint"` // a browser is sent there
	Token  string `json:"token_endpoint"`
	Device string `json:"device_authorization_endpoint"` // "": it signs nobody in without a browser
	Keys   string `json:"jwks_uri"`
	Revoke string `json:"revocation_endpoint"` // "": what it gave can't be given back
}

// discover asks an issuer what it says of itself.
func discover(ctx context.Context, client *http.Client, issuer string) (says Says, err error) {
	err = get(ctx, client, strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration", &says)
	if err == nil && says.Issuer != issuer {
		err = errors.New("it says that it is another issuer")
	}
	return says, err
}

// get asks for a JSON document. No error has what the answer says.
func get(ctx context.Context, client *http.Client, from string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", request.URL.Path, answer.Status)
	}
	raw, err := safefs.ReadAtMost(answer.Body, maxAnswer)
	if err != nil {
		return err
	}
	if json.Unmarshal(raw, into) != nil {
		return fmt.Errorf("%s: no JSON of the right form", request.URL.Path)
	}
	return nil
}
