package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/agent-on-demand/aod/api"
)

const (
	mcpHTTP  = "`tools/call` over HTTP, warm"
	mcpStdio = "`tools/call` over stdio, warm"

	mcpRevision = "2026-07-28"
	mcpList     = "tools/list"
	mcpCall     = "tools/call"
)

// modelContext is the small job as a tool of the Model Context Protocol, beside the same run by
// the server's own API.
func (b *bench) modelContext(ctx context.Context) (part, error) {
	if _, err := b.small(ctx); err != nil {
		return part{}, err
	}
	warm, err := b.stock(ctx, 2, smallRun, smallUnit)
	if err != nil {
		return part{}, err
	}
	stdio, err := b.speakMCP(ctx, warm.server)
	if err != nil {
		return part{}, err
	}
	params := fmt.Sprintf(`"name": %q, "arguments": {"n": 3}`, smallUnit)
	g := group{
		ways: []*way{
			warm.submission(apiWarm, smallRun),
			submission(mcpHTTP, warm.after, func(ctx context.Context) (api.Record, error) {
				return runOf(warm.askMCP(ctx, mcpCall, params))
			}),
			submission(mcpStdio, warm.after, func(context.Context) (api.Record, error) {
				return runOf(stdio.ask(mcpCall, params))
			}),
		},
		beside: []string{apiWarm}, times: 7, notes: []func() string{warm.String},
		aims: []aim{{of: mcpHTTP, beside: apiWarm, ratio: 1.15}, {of: mcpStdio, beside: apiWarm, ratio: 1.25}},
	}
	return g.measure(ctx, b.pairs)
}

// toolsListed is the list of tools of a server with many units.
func (b *bench) toolsListed(ctx context.Context) (part, error) {
	const units = 200
	j, err := b.small(ctx)
	if err != nil {
		return part{}, err
	}
	for n := range units {
		if err := b.likeIt(j, fmt.Sprintf("tool-%03d", n)); err != nil {
			return part{}, err
		}
	}
	s, err := b.serve(ctx, serving{})
	if err != nil {
		return part{}, err
	}
	g := group{times: 7, ways: []*way{{name: mcpList, do: func(ctx context.Context) error {
		answer, err := s.askMCP(ctx, mcpList, "")
		var list struct{ Tools []json.RawMessage }
		if err = errors.Join(err, json.Unmarshal(answer, &list)); err == nil && len(list.Tools) < units {
			err = fmt.Errorf("%d tools are listed", len(list.Tools))
		}
		return err
	}}}, aims: []aim{{of: mcpList, ms: 10}}}
	return g.measure(ctx, b.pairs)
}

// likeIt makes a unit that is like another one, until the row's end.
func (b *bench) likeIt(j job, name string) error {
	dir := filepath.Join(b.units(), name)
	b.close = append(b.close, func() error { return os.RemoveAll(dir) })
	if err := os.CopyFS(dir, os.DirFS(j.capsule)); err != nil {
		return err
	}
	return write(filepath.Join(dir, "agent.yaml"), "name: "+name+"\nlimits: {memory: 1GiB}\n")
}

// askMCP makes a request of the newest revision and returns its result.
func (s *server) askMCP(ctx context.Context, method, params string) (json.RawMessage, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/mcp",
		strings.NewReader(mcpRequest(method, params)))
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + s.token, "Content-Type": "application/json",
		"Accept":               "application/json, text/event-stream",
		"Mcp-Protocol-Version": mcpRevision, "Mcp-Method": method,
	} {
		request.Header.Set(name, value)
	}
	if method == mcpCall {
		request.Header.Set("Mcp-Name", smallUnit)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s: %s", method, response.Status, answer)
	}
	return mcpResult(answer)
}

func mcpRequest(method, params string) string {
	meta := fmt.Sprintf(`"_meta": {"io.modelcontextprotocol/protocolVersion": %q, "io.modelcontextprotocol/clientCapabilities": {}}`, mcpRevision)
	if params != "" {
		params += ", "
	}
	return fmt.Sprintf(`{"jsonrpc": "2.0", "id": 1, "method": %q, "params": {%s%s}}`, method, params, meta)
}

// mcpResult reads an answer: JSON, or a stream of events with one.
func mcpResult(answer []byte) (json.RawMessage, error) {
	for line := range strings.Lines(string(answer)) {
		line = strings.TrimSpace(strings.TrimPrefix(line, "data: "))
		var message struct {
			Result json.RawMessage
			Error  json.RawMessage
		}
		if json.Unmarshal([]byte(line), &message) != nil {
			continue
		}
		if message.Error != nil {
			return nil, fmt.Errorf("it answers %s", message.Error)
		}
		if message.Result != nil {
			return message.Result, nil
		}
	}
	return nil, fmt.Errorf("no result in %q", answer)
}

// runOf returns the run of a tool's result.
func runOf(result json.RawMessage, err error) (record api.Record, _ error) {
	if err != nil {
		return record, err
	}
	var called struct {
		IsError bool
		Meta    map[string]any `json:"_meta"`
	}
	if err := json.Unmarshal(result, &called); err != nil {
		return record, err
	}
	record.ID, _ = called.Meta["aod/run"].(string)
	if called.IsError || record.ID == "" {
		return record, fmt.Errorf("the call failed: %s", result)
	}
	return record, nil
}

// mcpProcess is `aod mcp`, which a client has started.
type mcpProcess struct {
	in  io.Writer
	out *bufio.Reader
}

func (b *bench) speakMCP(ctx context.Context, s *server) (*mcpProcess, error) {
	cmd := exec.CommandContext(ctx, b.aod, "--server", s.url, "mcp")
	cmd.Env = append(cmd.Environ(), "AOD_TOKEN="+s.token)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	b.close = append(b.close, func() error {
		return errors.Join(in.Close(), cmd.Wait())
	})
	p := &mcpProcess{in: in, out: bufio.NewReader(out)}
	_, err = p.ask(mcpList, "")
	return p, err
}

func (p *mcpProcess) ask(method, params string) (json.RawMessage, error) {
	if _, err := io.WriteString(p.in, mcpRequest(method, params)+"\n"); err != nil {
		return nil, err
	}
	for {
		line, err := p.out.ReadBytes('\n')
		if err != nil {
			return nil, err
		}
		if strings.Contains(string(line), `"id":1`) { // else it is a notification
			return mcpResult(line)
		}
	}
}
