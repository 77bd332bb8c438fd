package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/secrets"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/orchestrator/kind/remote"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
	"github.com/agent-on-demand/aod/runtime/enginetest"
	"github.com/agent-on-demand/aod/schemas"
)

// The probe is a capsule that runs the shell script it is given as a file: one image
// for whatever a test wants to happen in a sandbox.
var probeFiles = map[string]string{
	"Dockerfile": "FROM " + dockertest.Image + "\nVOLUME /var/spool /io\nCMD [\"bash\", \"/io/input/script\"]\n",
	"tools.yaml": "[]\n",
	"agent.yaml": "name: probe\n",
	"schema.json": `{
	  "input": {"type": "object", "properties": {
	    "script": {"type": "string", "format": "file_path"},
	    "data": {"type": "string", "format": "file_path"}
	  }, "required": ["script"], "additionalProperties": false},
	  "output": {"type": "object", "properties": {
	    "n": {"type": "int"},
	    "file": {"type": "string", "format": "file_path"}
	  }}
	}`,
}

// probe runs scripts in sandboxes of a fresh data directory on the real engine.
type probe struct {
	t          *testing.T
	engine     container.Engine
	containers *container.Containers
	o          *Local
	dir        string // of the capsule
	data       string
	out        string
}

// probeUIDs are the users of a probe's sandboxes, where the test is root.
var probeUIDs = runtime.UIDs{First: 2_100_000_000, Last: 2_100_065_535}

func newProbe(t *testing.T, agent string) *probe {
	t.Helper()
	return newProbeOver(t, dockertest.Require(t), agent)
}

// newScripted is a probe whose scripts are processes of this machine: for what comes of the files, the streams and the
// exit code of a program, and no wall nor limit of an engine. Scripts are files of its image, which is to run the command.
func newScripted(t *testing.T, agent string, scripts map[string]string, command ...string) *probe {
	t.Helper()
	engine := enginetest.NewFake(enginetest.Process(scripts))
	engine.AddImage(runtime.Image{ID: "sha256:debian", Tags: []string{dockertest.Image}, Entrypoint: command, OS: "linux", Arch: "amd64"})
	return newProbeOver(t, engine, agent)
}

func newProbeOver(t *testing.T, engine container.Engine, agent string) *probe {
	t.Helper()
	p := &probe{t: t, engine: engine, dir: t.TempDir(), data: t.TempDir(), out: filepath.Join(t.TempDir(), "out")}
	for name, content := range probeFiles {
		if name == "agent.yaml" {
			content += agent
		}
		write(t, filepath.Join(p.dir, name), content)
	}
	p.o = p.orchestrator(p.engine)
	t.Cleanup(p.nothingLeft)
	return p
}

// remote reports whether the engine is taken for one that doesn't see our files, as with
// AOD_ENGINE_REMOTE=1.
func (p *probe) remote() bool {
	engine, ok := p.engine.(runtime.RemoteEngine)
	return ok && engine.Remote()
}

func (p *probe) orchestrator(engine container.Engine) *Local {
	p.t.Helper()
	limits := runtime.Limits{DiskBytes: 64 << 20}
	p.containers = container.New(engine, container.Options{Limits: limits, Labels: map[string]string{"aod.test": "orchestrator"}, UIDs: probeUIDs})
	return newLocal(p.t, p.containers, Options{Home: p.data, Limits: limits})
}

// request asks for a run of the script.
func (p *probe) request(script string) Request {
	p.t.Helper()
	c, err := capsule.Load(p.dir)
	if err != nil {
		p.t.Fatal(err)
	}
	path := filepath.Join(p.t.TempDir(), "script")
	write(p.t, path, script)
	input, err := contract.Decode([]byte("{}"), contract.DefaultMaxBytes)
	if err != nil {
		p.t.Fatal(err)
	}
	return Request{Request: run.Request{Unit: unit.Of(c), Input: input, Files: []run.InputFile{{Field: "script", Path: path}}, Timeout: 5 * time.Minute}, OutDir: p.out}
}

// run runs the script to its end; a fault of AOD's fails the test.
func (p *probe) run(script string) api.Record {
	p.t.Helper()
	record, err := p.submit(trusted.Context(p.t), p.request(script))
	if err != nil {
		p.t.Fatal(err)
	}
	return record
}

func (p *probe) submit(ctx context.Context, req Request) (api.Record, error) {
	p.t.Helper()
	ended, err := p.o.Run(ctx, req)
	return ended.Record, err
}

// keepsSchema proves that a record is what schemas/run.schema.json says of it.
func keepsSchema(t *testing.T, record api.Record) {
	t.Helper()
	schema, findings := contract.Compile(schemas.Get("run"))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	raw, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := contract.Decode(raw, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range schema.Validate(payload) {
		t.Errorf("the record breaks its schema: %s", f)
	}
}

// logs runs the script and returns what it wrote.
func (p *probe) logs(script string) (string, api.Record) {
	p.t.Helper()
	var lines logLines
	req := p.request(script + "\necho '{}' > /io/output.json\n")
	req.Observe = lines.add
	record, err := p.submit(trusted.Context(p.t), req)
	if err != nil {
		p.t.Fatal(err)
	}
	return lines.text(), record
}

// nothingLeft proves that no container and no run directory is there any more.
func (p *probe) nothingLeft() {
	if err := p.o.Close(); err != nil {
		p.t.Errorf("close: %v", err)
	}
	containers, err := p.engine.ContainersByLabel(context.Background(), map[string]string{runtime.LabelOwner: p.o.data.owner})
	if err != nil {
		p.t.Errorf("list containers: %v", err)
	}
	for _, c := range containers {
		p.t.Errorf("container %.12s is left behind, %s", c.ID, c.State)
	}
	p.noVolumeLeft()
	entries, err := os.ReadDir(filepath.Join(p.data, "runs"))
	if err != nil {
		p.t.Errorf("list runs: %v", err)
	}
	for _, e := range entries {
		p.t.Errorf("run directory %s is left behind", e.Name())
	}
}

func (p *probe) noVolumeLeft() {
	remote, ok := p.engine.(runtime.Volumes)
	if !ok {
		return
	}
	volumes, err := remote.VolumesByLabel(context.Background(), map[string]string{runtime.LabelOwner: p.o.data.owner})
	if err != nil {
		p.t.Errorf("list volumes: %v", err)
	}
	for _, v := range volumes {
		p.t.Errorf("volume %s is left behind", v.Name)
	}
}

type logLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *logLines) add(e run.Event) {
	if e.Log == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, e.Log.Text)
}

func (l *logLines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// said is everything that a user is told of a run's failure.
func said(r api.Record) string {
	if r.Error == nil {
		return ""
	}
	lines := []string{r.Error.Message, r.Error.Hint}
	for _, f := range r.Error.Findings {
		lines = append(lines, f.String())
	}
	return strings.Join(lines, "\n")
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func show(r api.Record) string {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(raw)
}

// newLocal runs units over an engine until it is closed.
func newLocal(t *testing.T, containers *container.Containers, opts Options) *Local {
	t.Helper()
	opts.Kinds = kindsOver(containers, remote.New(remote.Options{Secrets: secrets.Files{Dir: filepath.Join(opts.Home, "secrets")}}))
	l, err := NewLocal(opts)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
