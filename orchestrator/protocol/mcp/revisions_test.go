package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

const patience = time.Minute

// ways are the ways to a server, with the SDK's own client.
var ways = map[string]func(t *testing.T, s *Server) sdk.Transport{
	"http": func(t *testing.T, s *Server) sdk.Transport {
		server := httptest.NewServer(s)
		t.Cleanup(server.Close)
		return &sdk.StreamableClientTransport{Endpoint: server.URL + Path, MaxRetries: -1}
	},
	"unix": func(t *testing.T, s *Server) sdk.Transport {
		at := filepath.Join(t.TempDir(), "s")
		listener, err := net.Listen("unix", at)
		must(t, err)
		server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: s}}
		server.Start()
		t.Cleanup(server.Close)
		transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", at)
		}}
		t.Cleanup(transport.CloseIdleConnections)
		return &sdk.StreamableClientTransport{Endpoint: "http://localhost/mcp", MaxRetries: -1, HTTPClient: &http.Client{Transport: transport}}
	},
	"stdio": func(t *testing.T, s *Server) sdk.Transport {
		in, client := io.Pipe()
		back, out := io.Pipe()
		var served sync.WaitGroup
		served.Go(func() { _ = s.ServeStdio(trusted.Context(t), in, out); _ = out.Close() })
		t.Cleanup(func() { _ = client.Close(); _ = back.Close(); served.Wait() })
		return &sdk.IOTransport{Reader: back, Writer: client}
	},
}

// heard is what a client was told.
type heard struct {
	progress chan *sdk.ProgressNotificationParams
	changes  chan struct{}
}

func connect(t *testing.T, transport sdk.Transport, revision string) (*sdk.ClientSession, heard) {
	t.Helper()
	h := heard{make(chan *sdk.ProgressNotificationParams, 100), make(chan struct{}, 100)}
	client := sdk.NewClient(&sdk.Implementation{Name: "tester", Version: "7"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { h.progress <- r.Params },
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { h.changes <- struct{}{} },
	})
	session, err := client.Connect(trusted.Context(t), transport, &sdk.ClientSessionOptions{ProtocolVersion: revision})
	must(t, err)
	t.Cleanup(func() { _ = session.Close() })
	if got := session.InitializeResult().ProtocolVersion; got != revision {
		t.Fatalf("speaks %s, not %s", got, revision)
	}
	return session, h
}

func TestEveryRevisionOnEveryWay(t *testing.T) {
	for way, to := range ways {
		for _, revision := range Revisions() {
			t.Run(way+" "+revision, func(t *testing.T) {
				for name, check := range map[string]func(*testing.T, *fakeService, *sdk.ClientSession, heard){
					"list": checkList, "call": checkCall, "errors": checkErrors, "files": checkFiles, "progress": checkProgress, "cancel": checkCancel,
					"changes": checkChanges,
				} {
					t.Run(name, func(t *testing.T) {
						f := newFake("hello", "a.b", "zebra")
						f.add("read", `{"input":{"type":"object","properties":{"doc":{"type":"string","format":"file_path"}}},"output":{"type":"object"}}`)
						session, h := connect(t, to(t, New(f, Options{})), revision)
						check(t, f, session, h)
					})
				}
			})
		}
	}
}

func checkList(t *testing.T, _ *fakeService, session *sdk.ClientSession, _ heard) {
	var names []string
	for tool, err := range session.Tools(trusted.Context(t), nil) {
		must(t, err)
		names = append(names, tool.Name)
		if tool.Description == "" || tool.Title == "" || tool.Annotations == nil || !tool.Annotations.ReadOnlyHint || *tool.Annotations.OpenWorldHint {
			t.Errorf("%+v", tool)
		}
	}
	if want := []string{"a_b", "hello", "read", "zebra"}; !slices.Equal(names, want) {
		t.Errorf("%v", names)
	}
}

func checkCall(t *testing.T, f *fakeService, session *sdk.ClientSession, _ heard) {
	f.outcome = func(_ Submission, r *api.Record) {
		r.Files = []api.File{{Name: "d/a b.png", SizeBytes: 3}, {Name: "note.txt", SizeBytes: 2}, {Name: "big.bin", SizeBytes: 9 << 20}}
		f.files[r.ID+"/d/a b.png"], f.files[r.ID+"/note.txt"] = "png", "hi"
	}
	params := &sdk.CallToolParams{Name: "a_b", Arguments: map[string]any{"n": 1}}
	params.Meta = sdk.Meta{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
	result, err := session.CallTool(trusted.Context(t), params)
	must(t, err)
	output, _ := result.StructuredContent.(map[string]any)
	if result.IsError || output["n"] != 1.0 || result.Meta["aod/run"] != idOf(1) {
		t.Errorf("%+v", result)
	}
	sub := f.submitted[0]
	if sub.Unit != "a.b" || sub.Metadata[ClientKey] != "tester 7" || !strings.HasPrefix(sub.TraceParent, "00-4bf9") {
		t.Errorf("%+v", sub)
	}
	var kinds []string
	for _, content := range result.Content {
		raw, err := json.Marshal(content)
		must(t, err)
		var typed struct{ Type, URI string }
		must(t, json.Unmarshal(raw, &typed))
		kinds = append(kinds, strings.TrimSpace(typed.Type+" "+typed.URI))
	}
	at := "resource_link aod://runs/" + idOf(1) + "/files/"
	want := []string{"text", at + "d/a%20b.png", "image", at + "note.txt", "resource", at + "big.bin"}
	if !slices.Equal(kinds, want) {
		t.Errorf("%q", kinds)
	}
	read, err := session.ReadResource(trusted.Context(t), &sdk.ReadResourceParams{URI: "aod://runs/" + idOf(1) + "/files/d/a%20b.png"})
	must(t, err)
	if string(read.Contents[0].Blob) != "png" || read.Contents[0].MIMEType != "image/png" {
		t.Errorf("%+v", read.Contents[0])
	}
	if _, err := session.ReadResource(trusted.Context(t), &sdk.ReadResourceParams{URI: "aod://runs/" + idOf(1) + "/files/big.bin"}); err == nil || !strings.Contains(err.Error(), "8388608 bytes") {
		t.Error(err)
	}
}

func checkErrors(t *testing.T, f *fakeService, session *sdk.ClientSession, _ heard) {
	for what, uri := range map[string]string{"no run": "aod://runs/" + idOf(9) + "/files/a", "up": "aod://runs/" + idOf(1) + "/files/%2e%2e/x"} {
		if _, err := session.ReadResource(trusted.Context(t), &sdk.ReadResourceParams{URI: uri}); codeOf(err) != -32602 {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := session.CallTool(trusted.Context(t), &sdk.CallToolParams{Name: "nobody"}); codeOf(err) != -32602 {
		t.Errorf("unknown tool: %v", err)
	}
	if _, err := session.CallTool(trusted.Context(t), &sdk.CallToolParams{Name: "hello", Arguments: map[string]any{"do": "panic"}}); codeOf(err) != -32603 || strings.Contains(err.Error(), "canary") {
		t.Errorf("panic: %v", err)
	}
	f.outcome = func(_ Submission, r *api.Record) {
		r.Outcome, r.Error = api.OutOfMemory, &api.RunError{Kind: api.KindMemoryLimit, Message: "too large", Hint: "send less"}
	}
	result, err := session.CallTool(trusted.Context(t), &sdk.CallToolParams{Name: "hello"})
	must(t, err)
	text := result.Content[0].(*sdk.TextContent).Text
	for _, part := range []string{`"kind":"memory_limit"`, `"hint":"send less"`, `"run":"` + idOf(1) + `"`} {
		if !result.IsError || !strings.Contains(text, part) {
			t.Errorf("%s is not in %s", part, text)
		}
	}
}

func checkFiles(t *testing.T, f *fakeService, session *sdk.ClientSession, _ heard) {
	run := f.keepFile("d/x y.csv", "a,b")
	for uri, content := range map[string]string{"data:text/plain;name=n.txt;base64,aGk=": "hi", "aod://runs/" + run + "/files/d/x%20y.csv": "a,b"} {
		f.contents = nil
		result, err := session.CallTool(trusted.Context(t), &sdk.CallToolParams{Name: "read", Arguments: map[string]any{"doc": uri}})
		must(t, err)
		if result.IsError || len(f.contents) != 1 || f.contents[0] != content {
			t.Errorf("%s: %q %+v", uri, f.contents, result.Content[0])
		}
	}
	result, err := session.CallTool(trusted.Context(t), &sdk.CallToolParams{Name: "read", Arguments: map[string]any{"doc": "/etc/passwd"}})
	must(t, err)
	if text := result.Content[0].(*sdk.TextContent).Text; !result.IsError || !strings.Contains(text, `"pointer":"/doc"`) {
		t.Error(text)
	}
}

func checkProgress(t *testing.T, f *fakeService, session *sdk.ClientSession, h heard) {
	f.hold = true
	f.events = []api.Event{{Seq: 1, Type: api.EventProgress, Data: []byte(`{"percent":40,"step":"two","message":"of five"}`)}}
	var call sync.WaitGroup
	call.Go(func() {
		params := &sdk.CallToolParams{Name: "hello"}
		params.SetProgressToken("tok")
		if _, err := session.CallTool(trusted.Context(t), params); err != nil {
			t.Error(err)
		}
	})
	select {
	case p := <-h.progress:
		if p.Message != "two: of five" || p.Progress != 40 || p.Total != 100 || p.ProgressToken != "tok" {
			t.Errorf("%+v", p)
		}
	case <-time.After(patience):
		t.Error("nothing was told")
	}
	f.finish()
	call.Wait()
}

func checkCancel(t *testing.T, f *fakeService, session *sdk.ClientSession, _ heard) {
	f.hold = true
	ctx, cancel := context.WithCancel(trusted.Context(t))
	defer cancel()
	go func() {
		testkit.Eventually(t, "its run is submitted", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.submitted) == 1 })
		cancel()
	}()
	if _, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "hello"}); err == nil {
		t.Error("no error")
	}
	testkit.Eventually(t, "its run is cancelled", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.cancelled) == 1 })
}

func checkChanges(t *testing.T, f *fakeService, session *sdk.ClientSession, h heard) {
	_, err := session.ListTools(trusted.Context(t), nil)
	must(t, err)
	for len(h.changes) > 0 { // of the tools that were there from the start
		<-h.changes
	}
	told := false
	for n := 0; !told && n < int(patience/time.Second); n++ { // over HTTP nobody hears what is told before its stream is open
		f.add(fmt.Sprintf("newcomer-%d", n), anySchema)
		_, err = session.ListTools(trusted.Context(t), nil) // has the server look
		must(t, err)
		select {
		case <-h.changes:
			told = true
		case <-time.After(time.Second):
		}
	}
	if !told {
		t.Error("nothing was told of the new tools")
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
