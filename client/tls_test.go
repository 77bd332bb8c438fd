package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
)

// A server that isn't spoken to as it is named is told of in one try, with what to do.
func TestATrustThatDoesNotHoldIsToldOf(t *testing.T) {
	asked := 0
	served := func(make func(http.Handler) *httptest.Server) *httptest.Server {
		server := make(answer(http.StatusOK, "application/json", `{"units":[],"next":null}`))
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		t.Cleanup(server.Close)
		return server
	}
	secure, plain := served(httptest.NewTLSServer), served(httptest.NewServer)
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	ours := &tls.Config{
		InsecureSkipVerify: true,
		VerifyConnection:   func(tls.ConnectionState) error { asked++; return fault.New(fault.Forbidden, "another key") },
	}
	for name, c := range map[string]struct {
		server string
		trust  *tls.Config
		kind   fault.Kind
		says   string // "": it answers
	}{
		"trusted":         {secure.URL, &tls.Config{RootCAs: roots}, 0, ""},
		"not trusted":     {secure.URL, nil, fault.Forbidden, "--pin"},
		"refused by us":   {secure.URL, ours, fault.Forbidden, "another key"},
		"TLS to plain":    {"https" + strings.TrimPrefix(plain.URL, "http"), nil, fault.Unavailable, "speaks no TLS"},
		"plain to TLS":    {"http" + strings.TrimPrefix(secure.URL, "https"), nil, fault.Unavailable, "https://"},
		"plain, as named": {plain.URL, nil, 0, ""},
	} {
		client, err := New(Options{Server: c.server, TLS: c.trust})
		if err != nil {
			t.Fatal(err)
		}
		client.conn.pause = nil // it tries once
		_, err = client.Units.List(context.Background())
		client.conn.http.CloseIdleConnections()
		said := ""
		if err != nil {
			said = fault.Public(err).Msg + fault.Public(err).Hint
		}
		if (err != nil) != (c.says != "") || err != nil && !fault.Is(err, c.kind) || !strings.Contains(said, c.says) {
			t.Errorf("%s: %v, %s", name, err, said)
		}
	}
	if asked != 1 {
		t.Errorf("it was tried %d times", asked)
	}
}
