package orchestrator

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime/docker"
)

// AOD_ENGINE_REMOTE=1 go test ./orchestrator takes all tests of this package that way.
// Its callers aren't parallel: a variable is the whole process'.
func newRemoteProbe(t *testing.T, agent string) *probe {
	t.Helper()
	t.Setenv(docker.RemoteEnv, "1")
	return newProbe(t, agent)
}

func TestAnEngineElsewhereGetsAndGivesFiles(t *testing.T) {
	p := newRemoteProbe(t, "")
	req := p.request(`mkdir -p /io/output/a/b && cat /io/input/data /io/input/data > /io/output/a/b/twice
ln -s /etc/passwd /io/output/link
echo '{"file":"a/b/twice"}' > /io/output.json`)
	data := t.TempDir() + "/data"
	write(t, data, strings.Repeat("0123456789abcdef", 64<<10))
	req.Files = append(req.Files, run.InputFile{Field: "data", Path: data})
	record, err := p.submit(trusted.Context(t), req)
	if err != nil || record.Outcome != api.Success || len(record.Files) != 1 || record.Files[0].SizeBytes != 2<<20 {
		t.Fatalf("%v\n%s", err, show(record))
	}
	if record.Usage == nil || record.Usage.PeakMemoryBytes == 0 {
		t.Errorf("the init's report didn't come: %+v", record.Usage)
	}
	if !strings.Contains(strings.Join(record.Warnings, "\n"), "symbolic link") {
		t.Errorf("warnings %q", record.Warnings)
	}
	content, err := os.ReadFile(record.Files[0].Path)
	if err != nil || strings.Count(string(content), "0123456789abcdef") != 128<<10 {
		t.Errorf("%d bytes came back: %v", len(content), err)
	}
}

func TestTheDiskOfAnEngineElsewhereIsWatched(t *testing.T) {
	p := newRemoteProbe(t, "") // 64 MiB, see probe.orchestrator
	began := time.Now()
	record := p.run(`mkdir -m 0 /workspace/closed; head -c 70M /dev/zero | split -b 8M - /workspace/part; sleep 1000`)
	if record.Outcome != api.LimitExceeded || !strings.Contains(said(record), "wrote more than 67108864 bytes to /io and /workspace") {
		t.Error(show(record))
	}
	if took := time.Since(began); took > testkit.Patience { // its own time limit is 5 minutes
		t.Errorf("it took %v to notice", took)
	}
}

// What an engine elsewhere would have to keep, or can't carry, is refused before anything starts.
func TestAnEngineElsewhereRefusesSecretsAndEgress(t *testing.T) {
	for name, c := range map[string]struct{ agent, says string }{
		"secrets": {"secrets: {KEY: a-key}\n", "gets secrets"},
		"egress":  {"egress: [good.example]\n", "reaches hosts by name"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newRemoteProbe(t, c.agent)
			record, err := p.submit(trusted.Context(t), p.request("true"))
			if !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), c.says) || !strings.Contains(fault.Public(err).Hint, "an engine on this machine") {
				t.Errorf("%v\n%s", err, show(record))
			}
		})
	}
}
