package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// mostMore is what the profile may cost a warm run, in milliseconds.
const mostMore = 2

// profileCost is the small job in sandboxes with AOD's seccomp profile, and in those with the
// engine's own. Both servers ask the engine the same way.
func (b *bench) profileCost(ctx context.Context) (part, error) {
	if _, err := b.small(ctx); err != nil {
		return part{}, err
	}
	var warmWays, coldWays []*way
	for _, s := range []struct {
		name   string
		change func([]byte) ([]byte, error)
	}{{"", func(body []byte) ([]byte, error) { return body, nil }}, {", with the engine's profile", withoutProfile}} {
		engine, err := b.engineLine(s.change)
		if err != nil {
			return part{}, err
		}
		warm, err := b.stockOf(ctx, serving{engine: engine}, 2, smallRun, smallUnit)
		if err != nil {
			return part{}, err
		}
		cold, err := b.serve(ctx, serving{engine: engine})
		if err != nil {
			return part{}, err
		}
		warmWays = append(warmWays, warm.submission(apiWarm+s.name, smallRun))
		coldWays = append(coldWays, cold.submission(apiCold+s.name, waiting, http.StatusOK))
	}
	g := group{
		ways: slices.Concat(warmWays, coldWays), beside: []string{warmWays[1].name, coldWays[1].name}, times: 3,
		aims: []aim{{of: warmWays[0].name, beside: warmWays[1].name, more: mostMore}},
	}
	return g.measure(ctx, b.pairs)
}

// engineLine is a way to the engine on which what makes a container can be changed. It returns a
// DOCKER_HOST.
func (b *bench) engineLine(change func([]byte) ([]byte, error)) (host string, err error) {
	engine := "/var/run/docker.sock"
	if at, ok := strings.CutPrefix(os.Getenv("DOCKER_HOST"), "unix://"); ok {
		engine = at
	}
	dir, err := os.MkdirTemp(b.dir, "line-")
	if err != nil {
		return "", err
	}
	entry, err := net.Listen("unix", filepath.Join(dir, "engine")) //nolint:noctx // a file of ours
	if err != nil {
		return "", err
	}
	var dialer net.Dialer
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "engine"})
	proxy.Transport = &http.Transport{
		MaxIdleConnsPerHost: 64,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", engine)
		},
	}
	proxy.FlushInterval = -1                    // events
	proxy.ErrorLog = log.New(io.Discard, "", 0) // requests that end with their server
	server := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/containers/create") {
				body, err := io.ReadAll(r.Body)
				if err == nil {
					body, err = change(body)
				}
				if err != nil {
					http.Error(w, err.Error(), http.StatusInternalServerError)
					return
				}
				r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			}
			proxy.ServeHTTP(w, r)
		}),
	}
	go func() { _ = server.Serve(entry) }() // until it is closed
	b.close = append(b.close, server.Close)
	return "unix://" + entry.Addr().String(), nil
}

// withoutProfile takes the seccomp profile out of what a container is made of.
func withoutProfile(body []byte) ([]byte, error) {
	var config, host map[string]json.RawMessage
	var options []string
	if err := errors.Join(json.Unmarshal(body, &config), json.Unmarshal(config["HostConfig"], &host),
		json.Unmarshal(host["SecurityOpt"], &options)); err != nil {
		return nil, err
	}
	options = slices.DeleteFunc(options, func(option string) bool { return strings.HasPrefix(option, "seccomp=") })
	var err error
	if host["SecurityOpt"], err = json.Marshal(options); err != nil {
		return nil, err
	}
	if config["HostConfig"], err = json.Marshal(host); err != nil {
		return nil, err
	}
	return json.Marshal(config)
}
