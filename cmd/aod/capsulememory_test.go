package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/handoff/capsuleapi"
	"github.com/agent-on-demand/aod/handoff/gateway"
	"github.com/agent-on-demand/aod/handoff/gateway/catalog"
	"github.com/agent-on-demand/aod/handoff/relay"
	"github.com/agent-on-demand/aod/internal/bytegate"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

// memoryServers is a host of one MCP server, which answers initialize alone.
type memoryServers struct{ end chan struct{} }

func (memoryServers) Rules(context.Context, string) (relay.Options, error) {
	return relay.Options{}, nil
}

func (m memoryServers) Start(_ context.Context, _ string, s *relay.Session) error {
	in, stdin := io.Pipe()
	stdout, out := io.Pipe()
	go s.Talk(stdin, stdout, func([]byte) {})
	go func() {
		_, _ = bufio.NewReader(in).ReadString('\n')
		_, _ = io.WriteString(out, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`+"\n")
		<-m.end
		s.End(relay.ErrClientLeft)
		_, _ = in.Close(), out.Close()
	}()
	return nil
}

// capsuleAPI serves the capsule API of a run with all that is mounted there, and returns its socket.
func capsuleAPI(t *testing.T, run string, memory *bytegate.Gate) (socket string) {
	t.Helper()
	gw, err := gateway.New(catalog.Catalog{}, gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	servers := memoryServers{make(chan struct{})}
	h := capsuleapi.NewHandler(handoff.Caller{Run: run, Root: run, Unit: "unit", Grants: []string{"callee"}}, &anyRuns{}, handoff.Limits{Memory: memory}, nil,
		mcpMount(slog.New(slog.DiscardHandler)),
		capsuleapi.Mount{Path: relay.Prefix + "{unit}", New: func(*handoff.Broker) http.Handler {
			return relay.NewDoor(servers, relay.DoorOptions{Sessions: 2, Logger: slog.New(slog.DiscardHandler)})
		}},
		capsuleapi.Mount{Path: "/v1/", New: func(*handoff.Broker) http.Handler { return gw.Handler(gateway.Session{Run: run}) }},
	)
	dir, err := os.MkdirTemp("", "aod") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "aod.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- capsuleapi.Serve(ctx, listener, h, nil) }()
	t.Cleanup(func() {
		close(servers.end)
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		_ = h.Close()
		gw.Close()
		_ = os.RemoveAll(dir)
	})
	return socket
}

// postOver sends the beginning of a request, as much of its body as there is.
func postOver(t *testing.T, socket, path string, length int, headers string, body []byte) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() { // it ends when one of both closes the connection
		_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: aod\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n%sContent-Length: %d\r\n\r\n",
			path, headers, length)
		_, _ = conn.Write(body)
	}()
	return conn
}

func answerOver(t *testing.T, conn net.Conn) *http.Response {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// A program that sends bodies and doesn't end them has its share of memory, and no more: other runs
// are served meanwhile, and all is given back.
func TestHalfBodiesOfACapsuleAreBounded(t *testing.T) {
	const (
		limit = 64 << 20
		body  = 15 << 20
		conns = 24
		hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	)
	half := bytes.Repeat([]byte(" "), body-4096) // all connections share it
	for path, c := range map[string]struct {
		opens   bool
		headers string
		waits   bool // for memory, instead of being refused
	}{
		"/mcp":                 {headers: "Mcp-Protocol-Version: 2026-07-28\r\n"},
		"/mcp/server":          {opens: true},
		"/v1/chat/completions": {waits: true},
	} {
		t.Run(path, func(t *testing.T) {
			memory := bytegate.New(limit)
			hostile, neighbour := capsuleAPI(t, "hostile", memory), capsuleAPI(t, "neighbour", memory)
			if c.opens {
				opened := answerOver(t, postOver(t, hostile, path, len(hello), "", []byte(hello)))
				c.headers = "Mcp-Session-Id: " + opened.Header.Get("Mcp-Session-Id") + "\r\n"
			}
			before := testkit.HeapBytes()
			refused := make(chan *http.Response, conns)
			var open []net.Conn
			send := func() {
				conn := postOver(t, hostile, path, body, c.headers, half)
				open = append(open, conn)
				go func() {
					if response, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
						refused <- response
					}
				}()
			}
			send()
			send()
			// Two fit. All at once may refuse each other, until fewer are left.
			testkit.Eventually(t, "the run has its share", func() bool { return memory.Held() >= int64(2*len(half)) })
			for range conns - 2 {
				send()
			}
			testkit.Eventually(t, "the others are refused", func() bool {
				return c.waits || len(refused) > conns/2 || memory.Held() > limit
			})
			if held, grown := memory.Held(), testkit.HeapBytes()-before; held > limit/2 || grown > 3*limit {
				t.Errorf("%d MiB count, the heap has grown by %d MiB", held>>20, grown>>20)
			}
			for range len(refused) {
				if response := <-refused; response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" {
					t.Errorf("%s %v", response.Status, response.Header)
				}
			}
			if answer := answerOver(t, postOver(t, neighbour, "/mcp", len(hello), "", []byte(hello))); answer.StatusCode != http.StatusOK {
				t.Errorf("a neighbour opens a session: %s", answer.Status)
			}
			large := `{"target":"callee","args":{"x":"` + strings.Repeat("x", 900<<10) + `"}}`
			if answer := answerOver(t, postOver(t, neighbour, "/handoff", len(large), "", []byte(large))); answer.StatusCode != http.StatusOK {
				t.Errorf("a neighbour calls: %s", answer.Status)
			}
			for _, conn := range open {
				conn.Close()
			}
			testkit.Eventually(t, "all memory is given back", func() bool { return memory.Held() == 0 })
		})
	}
}
