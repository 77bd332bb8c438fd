package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"

	"github.com/agent-on-demand/aod/handoff/upstream"
	"github.com/agent-on-demand/aod/internal/secrets"
)

// askUpstream is a request to an upstream by a socket like that of a run, beside the same request
// to the service itself.
func (b *bench) askUpstream(ctx context.Context) (part, error) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_,
			_ = io.WriteString(w, "ok")
	}))
	defer service.Close()
	up, err := upstream.New(upstream.Table{"svc": {
		URL: service.URL, Secret: "key", Header: "Authorization",
		Scheme: "Bearer", Methods: []string{"GET"},
	}},
		upstream.Options{Key: func(string) (secrets.Secret, error) { return "a-key-of-16-byte", nil }})
	if err != nil {
		return part{}, err
	}
	defer up.Close()
	socket := filepath.Join(b.dir, "upstream.sock")
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return part{}, err
	}
	handler := up.Handler(upstream.Session{Run: "r", Names: []string{"svc"}})
	//nolint:gosec // the bench asks itself
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler}}
	server.Start()
	defer server.Close()
	dialer := net.Dialer{}
	through := &http.Client{Transport: &http.Transport{DialContext: func(
		ctx context.Context, _, _ string,
	) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", socket)
	}}}
	const direct, own = "the service itself", "an upstream of a run"
	g := group{
		ways: []*way{
			{name: direct, do: func(ctx context.Context) error { return getOK(ctx, http.DefaultClient, service.URL) }},
			{name: own, do: func(ctx context.Context) error { return getOK(ctx, through, "http://aod/upstream/svc") }},
		},
		beside: []string{direct}, times: 100,
	}
	made, err := g.measure(ctx, b.pairs)
	if err == nil {
		made.goals = []goal{atMost("added by an upstream, p50 in ms", number(made, own)-number(made, direct), 2)}
	}
	return made, err
}

func getOK(ctx context.Context, client *http.Client, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}
