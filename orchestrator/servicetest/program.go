package servicetest

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/enginetest"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

// Exit codes of what is wrong with a test.
const (
	exitNoProgram = 97 // the unit has no program
	exitNoFile    = 98
	exitNoInput   = 99

	exitKilled     = 137
	exitTerminated = 143
)

// Program is what a container runs; it returns its exit code. The end of ctx is SIGTERM or SIGKILL.
type Program func(ctx context.Context, s Sandbox) int

// Programs are by the names of their units.
type Programs map[string]Program

// Run is the program of every container: it runs that of the container's unit.
func (p Programs) Run(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
	program := p[spec.Labels[runtime.LabelUnit]]
	if program == nil {
		return exitNoProgram
	}
	terminated := enginetest.Terminated(ctx)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-terminated:
			cancel()
		case <-ctx.Done():
		}
	}()
	code := program(ctx, Sandbox{Spec: spec, Stdout: stdout, Stderr: stderr})
	if pause.Over(terminated) {
		return exitTerminated
	}
	return code
}

// Sandbox is what a program has around it.
type Sandbox struct {
	Spec           runtime.ContainerSpec
	Stdout, Stderr io.Writer
}

// Path returns where a path of the container is on this machine, or "" where nothing is mounted.
func (s Sandbox) Path(inside string) string {
	rest := ""
	for at := path.Clean(inside); ; at = path.Dir(at) {
		for _, m := range s.Spec.Mounts {
			if m.Target == at {
				return filepath.Join(m.Source, rest)
			}
		}
		if at == "/" || at == "." {
			return ""
		}
		rest = path.Join(path.Base(at), rest)
	}
}

// Input decodes the run's input.
func (s Sandbox) Input(into any) error {
	raw, err := os.ReadFile(s.Path("/io/input.json"))
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// Output writes the run's result. What a program writes that was killed meanwhile is lost anyway.
func (s Sandbox) Output(result any) {
	_ = os.WriteFile(s.Path("/io/output.json"), JSON(result), 0o600)
}

// Print appends to the stdout of a program for which that is a file: of an agent, or an Agentic Unit.
// What a program prints that was killed meanwhile is lost anyway.
func (s Sandbox) Print(text string) {
	out, err := os.OpenFile(s.stdout(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer out.Close()
	_, _ = io.WriteString(out, text)
}

// Printed is what was printed to such a stdout so far.
func (s Sandbox) Printed() string {
	raw, _ := os.ReadFile(s.stdout())
	return string(raw)
}

func (s Sandbox) stdout() string {
	at := slices.Index(s.Spec.Entrypoint, "-stdout")
	return s.Path(s.Spec.Entrypoint[at+1])
}

// Fed are the lines that the program of a living session was given on its stdin so far. An init would
// copy them.
func (s Sandbox) Fed() []string {
	raw, err := os.ReadFile(s.Path("/run/aod/stdin"))
	if err != nil || len(raw) < initreport.FeedHeader {
		return nil
	}
	text := raw[initreport.FeedHeader:][:binary.BigEndian.Uint64(raw)]
	return strings.SplitAfter(string(text), "\n")[:bytes.Count(text, []byte("\n"))]
}

// Ask sends a request to the capsule API, again with the same key until there is an answer, as the
// Python client does. It returns the answer behind its status, or "" when ctx has ended.
func (s Sandbox) Ask(ctx context.Context, method, path, key string, body []byte) string {
	client := s.client()
	for ctx.Err() == nil {
		request, err := http.NewRequestWithContext(ctx, method, "http://aod"+path, bytes.NewReader(body))
		if err != nil {
			return err.Error()
		}
		request.Header.Set("Content-Type", "application/json")
		if key != "" {
			request.Header.Set("Idempotency-Key", key)
		}
		if answer, ok := answerOf(client, request); ok {
			return answer
		}
		time.Sleep(askAgain) // the orchestrator is away, or going away
	}
	return ""
}

const askAgain = 5 * time.Millisecond

func answerOf(client *http.Client, request *http.Request) (answer string, ok bool) {
	response, err := client.Do(request)
	if err != nil {
		return "", false
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode == http.StatusServiceUnavailable {
		return "", false
	}
	return fmt.Sprintf("%d %s", response.StatusCode, body), true
}

func (s Sandbox) client() *http.Client {
	socket := s.Path("/run/aod/aod.sock")
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
}

// Orders are the input of the unit "worker": what its program does.
type Orders struct {
	Mark  string `json:"mark,omitempty"`  // is counted when the program starts
	Lines int    `json:"lines,omitempty"` // of log
	Until string `json:"until,omitempty"` // a gate that it waits for
	Exit  int    `json:"exit,omitempty"`
	File  string `json:"file,omitempty"` // an output file to write
	Doc   string `json:"doc,omitempty"`  // an input file to copy into it
}

const (
	workerAgent  = "limits: {timeout: 2h}\n"
	workerSchema = `{
	  "input": {"type": "object", "properties": {
	    "mark": {"type": "string"}, "lines": {"type": "int"}, "until": {"type": "string"}, "exit": {"type": "int"},
	    "file": {"type": "string"}, "doc": {"type": "string", "format": "file_path"}
	  }, "additionalProperties": false},
	  "output": {"type": "object", "properties": {
	    "mark": {"type": "string"}, "file": {"type": "string", "format": "file_path"}
	  }}
	}`
)

// work does what its orders are.
func (h *Harness) work(ctx context.Context, s Sandbox) int {
	var orders Orders
	if s.Input(&orders) != nil {
		return exitNoInput
	}
	h.Started(orders.Mark)
	for n := range orders.Lines {
		_, _ = fmt.Fprintf(s.Stdout, "line %d\n", n)
	}
	if orders.Until != "" {
		select {
		case <-h.Gate(orders.Until):
		case <-ctx.Done():
			return exitKilled
		}
	}
	if !s.deliver(orders) {
		return exitNoFile
	}
	result := map[string]string{"mark": orders.Mark}
	if orders.File != "" {
		result["file"] = orders.File
	}
	s.Output(result)
	return orders.Exit
}

// deliver writes the output file.
func (s Sandbox) deliver(orders Orders) bool {
	if orders.File == "" {
		return true
	}
	content := []byte("content of " + orders.Mark)
	if orders.Doc != "" {
		var err error
		if content, err = os.ReadFile(filepath.Join(s.Path("/io/input"), orders.Doc)); err != nil {
			return false
		}
	}
	path := filepath.Join(s.Path("/io/output"), orders.File)
	return os.WriteFile(path, content, 0o600) == nil //nolint:gosec // a test names the file
}
