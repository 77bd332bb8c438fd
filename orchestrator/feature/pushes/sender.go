package pushes

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"maps"
	"net/http"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/handoff/egress"
)

const (
	maxAnswer       = 64 << 10 // bytes of an answer that are read, to no end but that the connection serves again
	maxAnswerHeader = 64 << 10
	idleTime        = 30 * time.Second // that a connection waits for the next request
)

// sender makes requests to receivers.
type sender struct {
	client    *http.Client
	transport *http.Transport
}

func newSender(opts Options, door *egress.Door) sender {
	transport := &http.Transport{ // without a proxy: that would be whom addresses are checked for
		DialContext:            door.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: opts.Roots},
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           opts.AtOnce,
		MaxIdleConnsPerHost:    opts.PerHost,
		IdleConnTimeout:        idleTime,
		MaxResponseHeaderBytes: maxAnswerHeader,
		DisableCompression:     true,
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return sender{
		client:    &http.Client{Transport: transport, CheckRedirect: stay, Timeout: opts.Timeout},
		transport: transport,
	}
}

// send makes a request to a receiver, and returns what came of it with the status of the answer.
func (s sender) send(ctx context.Context, to Target, m Message) (Word, int) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, bytes.NewReader(m.Body))
	if err != nil {
		return Barred, 0 // it was an address when it was stored
	}
	maps.Copy(request.Header, m.Header)
	request.Header.Set("Content-Type", m.Kind)
	request.Header.Set("User-Agent", "AOD")
	to.show(request.Header)
	answer, err := s.client.Do(request)
	switch {
	case fault.Is(err, fault.Forbidden):
		return Barred, 0
	case err != nil:
		return Unanswered, 0
	}
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer) // the status is the answer
	_ = answer.Body.Close()
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return Refused, answer.StatusCode
	}
	return Delivered, answer.StatusCode
}

func (s sender) close() { s.transport.CloseIdleConnections() }
