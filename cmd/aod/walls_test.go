package main

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/cmd/aod/admin"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/config"
	"github.com/agent-on-demand/aod/handoff/egress"
	"github.com/agent-on-demand/aod/handoff/gateway"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/internal/testing/trusted"
	"github.com/agent-on-demand/aod/orchestrator"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/orchestrator/kind/remote"
	"github.com/agent-on-demand/aod/orchestrator/servicetest"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

// walled is a server of this process with all its protocols, wired as `aod serve` does it, over an
// engine in memory.
type walled struct {
	*testing.T
	data, url, key string
	service        *orchestrator.Service
	conn           *grpc.ClientConn
	tokens         *access.Tokens
	keys           map[string]string // tokens by their names
	file           *config.Config    // what is read when the settings are read again
}

const writerSchema = `{"input": {"type": "object", "properties": {"text": {"type": "string"}, "doc": {"type": "string", "format": "file_path"}}},
	"output": {"type": "object", "properties": {"report": {"type": "string", "format": "file_path"}}}}`

func writerFiles(name string) map[string]string {
	return map[string]string{"Dockerfile": "FROM base:1\nCMD [\"writer\"]\n", "agent.yaml": "name: " + name + "\n", "tools.yaml": "[]\n", "schema.json": writerSchema}
}

// writes is the program of its units: it writes a report, with the text "show" it shows an artifact, and with "wait" it
// doesn't end.
func writes(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
	dirs := map[string]string{}
	for _, m := range spec.Mounts {
		dirs[m.Target] = m.Source
	}
	var input struct{ Text string }
	raw, err := os.ReadFile(filepath.Join(dirs["/io"], "input.json"))
	if err = errors.Join(err, json.Unmarshal(raw, &input)); err != nil {
		return 9
	}
	if input.Text == "show" {
		servicetest.Sandbox{Spec: spec, Stdout: stdout, Stderr: stderr}.
			Ask(ctx, http.MethodPost, "/artifact", "shown", []byte(`{"id":"art","text":"canary"}`))
	}
	if input.Text == "wait" {
		select {
		case <-ctx.Done():
		case <-enginetest.Terminated(ctx):
		}
		return 143
	}
	err = errors.Join(os.WriteFile(filepath.Join(dirs["/io"], "output", "report.txt"), []byte("canary"), 0o600),
		os.WriteFile(filepath.Join(dirs["/io"], "output.json"), []byte(`{"report":"report.txt"}`), 0o600))
	if err != nil {
		return 8
	}
	return 0
}

func newWalled(t *testing.T, change func(*config.Config)) *walled {
	t.Helper()
	_, data := alone(t)
	return newWalledAt(t, data, change)
}

// newWalledAt is newWalled with a data directory.
func newWalledAt(t *testing.T, data string, change func(*config.Config)) *walled {
	t.Helper()
	c, err := config.Load(config.Options{Data: data})
	w := &walled{T: t, data: data, keys: map[string]string{}}
	w.must(err)
	c.Units = []string{t.TempDir()}
	for name, text := range writerFiles("writer") {
		write(t, text, c.Units[0], "writer", name)
	}
	if change != nil {
		change(c)
	}
	a := newApp(nil, nil, nil)
	engine := enginetest.NewFake(enginetest.WithInit(writes))
	engine.AddImage(runtime.Image{ID: "sha256:base", Tags: []string{"base:1"}, Cmd: []string{"writer"}, OS: "linux", Arch: "amd64"})
	logger := slog.New(slog.DiscardHandler)
	settings := newReloader(c, logger)
	w.file = c
	settings.read = func() (*config.Config, error) { return w.file, nil }
	settings.gateway, err = gateway.New(c.Catalog(), gateway.Options{})
	w.must(err)
	opts, err := serviceOptions(settings, home(c))
	w.must(err)
	opts.Kinds = kindsOver(container.New(engine, container.Options{Logger: logger}), remote.New(remote.Options{Logger: logger}))
	opts.Features = featuresOver(featureOptions{door: egress.New(egress.Options{}), pushes: pushesOf(c)})
	w.service, err = orchestrator.NewService(opts)
	w.must(err)
	settings.service = w.service
	w.tokens = admin.NamedTokens(home(c))
	w.serve(a, settings)
	return w
}

// serve serves until the test ends.
func (w *walled) serve(a *app, settings *reloader) {
	w.Helper()
	ctx, stop := context.WithCancel(context.Background())
	c := settings.config()
	made, stopWatching, err := a.newAPI(ctx, w.service, settings, settings.logger)
	w.must(err)
	w.must(w.service.Start(ctx))
	web, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	calls, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	served := make(chan error, 2)
	go func() { served <- made.Serve(ctx, web) }()
	go func() { served <- made.agents.ServeGRPC(ctx, calls) }()
	w.url = "http://" + web.Addr().String()
	w.must(writeAddress(home(c), w.url))
	w.key, err = cli.ReadSmall(c.TokenFile)
	w.must(err)
	w.conn, err = grpc.NewClient(calls.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	w.must(err)
	w.Cleanup(func() {
		w.must(w.conn.Close())
		stop()
		w.must(errors.Join(<-served, <-served))
		stopWatching()
		over, cancel := context.WithCancel(context.Background())
		cancel()
		w.service.Shutdown(over, false)
		w.must(w.service.Close())
	})
}

func (w *walled) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// add makes a token.
func (w *walled) add(name string, scopes ...access.Scope) {
	w.Helper()
	w.grant(access.Grant{Name: name, Scopes: scopes})
}

// grant makes a token that has a grant.
func (w *walled) grant(g access.Grant) {
	w.Helper()
	key, err := w.tokens.Add(g)
	w.must(err)
	w.keys[g.Name] = key
}

// asks sends a request with the token of a name, "" sends none, and reads the answer.
func (w *walled) asks(name, method, path, body string, headers ...string) (status int, answer string) {
	w.Helper()
	response := w.begins(name, method, path, body, headers...)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	w.must(err)
	return response.StatusCode, string(raw)
}

// listens has a client of MCP hear what the server says by itself.
func (w *walled) listens(name string) *http.Response {
	w.Helper()
	headers := append(w.mcpSession(name), "Accept: text/event-stream")
	return w.begins(name, http.MethodGet, "/mcp", "", headers...)
}

// begins sends a request whose answer is still to be read.
func (w *walled) begins(name, method, path, body string, headers ...string) *http.Response {
	w.Helper()
	request, err := http.NewRequestWithContext(w.Context(), method, w.url+path, strings.NewReader(body))
	w.must(err)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if name != "" {
		request.Header.Set("Authorization", "Bearer "+w.keys[name])
	}
	for _, header := range headers {
		key, value, _ := strings.Cut(header, ": ")
		request.Header.Set(key, value)
	}
	response, err := http.DefaultClient.Do(request)
	w.must(err)
	return response
}

// made has a run made by the token of a name, as an MCP client would, and waits until it runs or is
// over.
func (w *walled) made(name, text string) api.Record {
	w.Helper()
	ctx := access.WithGrant(w.Context(), access.Grant{Name: name, Scopes: []access.Scope{access.Run}})
	input, err := json.Marshal(map[string]string{"text": text})
	w.must(err)
	record, _, err := w.service.Submit(ctx, spool.Submission{Unit: "writer", Input: input, Metadata: map[string]string{"mcp_client": "x"}})
	w.must(err)
	testkit.Eventually(w, "its run runs or is over", func() bool {
		record, err = w.service.Runs.Get(trusted.Context(w), record.ID)
		return err == nil && (record.Outcome != "" || text == "wait" && record.State == api.Running)
	})
	return record
}

// archive is a unit like the writer as a tar, as a text.
func (w *walled) archive(name string) string { return tarOf(w, writerFiles(name)) }

// tarOf is files as a tar, as a text.
func tarOf(w testing.TB, files map[string]string) string {
	w.Helper()
	var b strings.Builder
	archive := tar.NewWriter(&b)
	must := func(err error) {
		if err != nil {
			w.Fatal(err)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		text := files[file]
		must(archive.WriteHeader(&tar.Header{Name: file, Mode: 0o644, Size: int64(len(text))}))
		_, err := io.WriteString(archive, text)
		must(err)
	}
	must(archive.Close())
	return b.String()
}
