package orchestrator

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/orchestrator/pool"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/orchestrator/spool"
	"github.com/agent-on-demand/aod/orchestrator/units"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// afterwards are the fields of a record that tell of what follows the outcome.
var afterwards = cmp.Options{
	cmpopts.IgnoreFields(api.Record{}, "Transitions", "Previous", "ChangedAt", "FinishedAt"),
	cmpopts.IgnoreFields(api.Timings{}, "Total"),
}

// wantAsTold wants a record to be what who waited for the outcome was told.
func wantAsTold(t *testing.T, told, kept api.Record) {
	t.Helper()
	if diff := cmp.Diff(told, kept, afterwards); told.Outcome != "" && diff != "" {
		t.Errorf("run %s is another than at its outcome (-told +kept):\n%s", told.ID, diff)
	}
}

// wantWhole wants who waits to be told of a log that was cut, and of all that was kept of it.
func wantWhole(t *testing.T, told api.Record, bytes int64) {
	t.Helper()
	if told.Outcome != api.Success || told.Log.Bytes != bytes || !told.Log.Truncated || !hasWarning(told, "limits.log") {
		t.Errorf("told: %d bytes of log %s", told.Log.Bytes, show(told))
	}
}

func TestWhoWaitsIsToldTheWholeRecord(t *testing.T) {
	t.Parallel()
	w := newFixture(t, func(o *settings) {
		for name, content := range workerFiles {
			content = strings.ReplaceAll(content, "timeout: 2m", "timeout: 2m, log: 1690B")
			write(t, filepath.Join(o.Sources[0], "worker", name), content)
			write(t, filepath.Join(o.Sources[0], "asker", name), strings.ReplaceAll(content, "worker", "asker"))
		}
		o.Containers.Pool.Size = 8
		one := 1
		o.Units["asker"] = units.Settings{Given: unit.Given{Warm: &one}}
	})
	for range 3 {
		for _, name := range []string{"worker", "asker"} {
			told, err := w.service.Runs.Await(trusted.Context(t), w.submitTo(name, orders{Mark: name, Lines: 300}))
			if err != nil {
				t.Fatal(err)
			}
			wantWhole(t, told, 1690)
			wantAsTold(t, told, w.until(told.ID, run.Over))
		}
		w.stocked("asker", 1)
	}
}

// perlWorker writes 2000 bytes of log in each run, and serves several.
//
//nolint:dupword // Perl waits so
const perlWorker = `
use IO::Socket::INET;
$| = 1;
sub api {
	my ($request, $body) = @_;
	for (1 .. 200) {
		my $s = IO::Socket::INET->new("127.0.0.1:7070");
		if ($s) {
			print $s "$request HTTP/1.0\r\nHost: 127.0.0.1:7070\r\nContent-Type: application/json\r\nContent-Length: " . length($body) . "\r\n\r\n$body";
			my $answer = do { local $/; <$s> };
			return $answer if $answer =~ m{^HTTP/1.\d 2};
		}
		select undef, undef, undef, 0.05;
	}
	exit 9;
}
while (1) {
	my $told = api("GET /invocation", "");
	for (1 .. 10) { print "x" x 99, "\n"; print STDERR "y" x 99, "\n" }
	if ($told !~ /^AOD-Remaining:/mi) {
		open F, ">", "/io/output.json"; print F "{}"; close F;
		exit 0;
	}
	my ($run) = $told =~ /^AOD-Run: (\S+)/mi;
	unlink "/io/input.json";
	print "\x1eaod-end $run\x1e\n"; print STDERR "\x1eaod-end $run\x1e\n";
	api("POST /invocation/result", "{}");
}
`

// Only an engine shows how late the streams of a container are.
func TestWhoWaitsIsToldTheWholeRecordOfAContainer(t *testing.T) {
	t.Parallel()
	engine, sources := dockertest.Require(t), t.TempDir()
	for name, agent := range map[string]string{"plain": "", "again": "reuse: 100\nwarm: 1\n"} {
		for file, content := range map[string]string{
			"Dockerfile": "FROM " + dockertest.Image + "\nCOPY worker.pl /\nCMD [\"perl\", \"/worker.pl\"]\n", "worker.pl": perlWorker,
			"agent.yaml": "name: " + name + "\nlimits: {log: 1690B}\n" + agent, "schema.json": workerFiles["schema.json"], "tools.yaml": "[]\n",
		} {
			write(t, filepath.Join(sources, name, file), content)
		}
	}
	l := &leaky{T: t, opts: settings{
		Options: Options{Home: filepath.Join(t.TempDir(), "server"), Sources: []string{sources}, Concurrency: 2, Units: map[string]units.Settings{}},
		Containers: container.Options{
			Units: map[string]container.Extra{}, Labels: map[string]string{"aod.test": "orchestrator"}, UIDs: probeUIDs, Pool: pool.Options{Size: 1},
		},
	}}
	l.start(engine)
	served := 0
	// Whether a container serves again is up to the pool, which may have started another one meanwhile.
	for round := 0; round < 4 || served < 2 && round < 40; round++ {
		for _, name := range []string{"plain", "again"} {
			record, _, err := l.service.Submit(trusted.Context(t), spool.Submission{Unit: name})
			if err == nil {
				record, err = l.service.Runs.Await(trusted.Context(t), record.ID)
			}
			if err != nil {
				t.Fatal(err)
			}
			wantWhole(t, record, 1690)
			wantAsTold(t, record, l.until(record.ID, run.Over))
			served = max(served, record.Container.Served)
		}
		within(t, func() bool {
			return slices.ContainsFunc(l.service.Figures.Pool().Units, func(u api.PoolUnit) bool { return len(u.Waiting) > 0 && u.Waiting[0].Loaded })
		}, func() string { return "no container waits: " + string(mustJSON(l.service.Figures.Pool())) })
	}
	if served < 2 {
		t.Error("no container served several runs")
	}
}
