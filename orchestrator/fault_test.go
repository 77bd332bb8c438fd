package orchestrator

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

// fakeRun runs the probe on a fake engine whose containers do what program does.
func fakeRun(t *testing.T, broken map[string]error, program enginetest.Program) (*enginetest.Fake, *Local, api.Record, error) {
	t.Helper()
	fake := enginetest.NewFake(program)
	fake.AddImage(runtime.Image{ID: "sha256:debian", Tags: []string{dockertest.Image}, Cmd: []string{"bash"}, OS: "linux", Arch: "amd64"})
	fake.Hook = func(_ context.Context, method string) error { return broken[method] }
	dir := t.TempDir()
	for name, content := range probeFiles {
		write(t, filepath.Join(dir, name), content)
	}
	c, err := capsule.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "script")
	write(t, script, "")
	input, err := contract.Decode([]byte("{}"), contract.DefaultMaxBytes)
	if err != nil {
		t.Fatal(err)
	}
	o := newLocal(t, container.New(fake, container.Options{}), Options{Home: t.TempDir()})
	ended, err := o.Run(trusted.Context(t), Request{
		Request: run.Request{Unit: unit.Of(c), Input: input, Files: []run.InputFile{{Field: "script", Path: script}}, Timeout: time.Minute},
		OutDir:  filepath.Join(t.TempDir(), "out"),
	})
	if closed := o.Close(); closed != nil {
		t.Error(closed)
	}
	return fake, o, ended.Record, err
}

// succeed is a program that leaves a valid result.
func succeed(_ context.Context, spec runtime.ContainerSpec, _, _ io.Writer) int {
	for _, m := range spec.Mounts {
		if m.Target == "/io" {
			_ = os.WriteFile(filepath.Join(m.Source, "output.json"), []byte(`{"n":1}`), 0o600)
		}
	}
	return 0
}

func TestAnEngineThatFailsIsAFaultAndLeavesNothing(t *testing.T) {
	t.Parallel()
	away := fault.Wrap(fault.Unavailable, errors.New("secret cause"), "the engine is away")
	for _, method := range []string{"Image", "Build", "Create", "Attach", "NextExit", "Start", "Inspect"} {
		t.Run(method, func(t *testing.T) {
			fake, o, record, err := fakeRun(t, map[string]error{method: away}, succeed)
			if !fault.Is(err, fault.Unavailable) {
				t.Errorf("error %v", err)
			}
			if record.Outcome != api.SystemError || record.State != api.Failed || record.Error.Category != api.CategoryTransient {
				t.Errorf("record %s", show(record))
			}
			if strings.Contains(show(record), "secret cause") {
				t.Error("the record shows a private cause")
			}
			keepsSchema(t, record)
			assertNothingLeft(t, fake, o)
		})
	}
}

func TestARunKeepsItsOutcomeWhenOnlyTheCleaningUpFails(t *testing.T) {
	t.Parallel()
	fake, o, record, err := fakeRun(t, map[string]error{"Remove": fault.New(fault.Unavailable, "the engine is away")}, succeed)
	if err != nil || record.Outcome != api.Success {
		t.Fatalf("%v\n%s", err, show(record))
	}
	if len(record.Warnings) != 1 || !strings.Contains(record.Warnings[0], "cleaning up") {
		t.Errorf("warnings %q", record.Warnings)
	}
	next := newLocal(t, container.New(fake, container.Options{}), Options{Home: o.data.path})
	if swept, err := next.Sweep(trusted.Context(t)); err == nil || len(swept) > 0 {
		t.Errorf("a sweep without an engine removed %v", swept)
	}
	fake.Hook = nil
	if swept, err := next.Sweep(trusted.Context(t)); err != nil || len(swept) != 1 || swept[0] != record.ID {
		t.Errorf("the next sweep removed %v, %v", swept, err)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	assertNothingLeft(t, fake, next)
}

func TestTheCallsOfARunAreInOrder(t *testing.T) {
	t.Parallel()
	fake, o, record, err := fakeRun(t, nil, succeed)
	if err != nil || record.Outcome != api.Success {
		t.Fatalf("%v\n%s", err, show(record))
	}
	calls := strings.Join(fake.Calls(), " ")
	calls = strings.Replace(calls, "NextExit Attach", "Attach NextExit", 1) // they are asked for side by side
	if !strings.HasSuffix(calls, "Create Attach NextExit Start Inspect Remove") {
		t.Errorf("calls %s", calls)
	}
	assertNothingLeft(t, fake, o)
}

func assertNothingLeft(t *testing.T, engine runtime.Containers, o *Local) {
	t.Helper()
	containers, err := engine.ContainersByLabel(trusted.Context(t), map[string]string{runtime.LabelRun: ""})
	if err != nil || len(containers) > 0 {
		t.Errorf("containers left: %v %v", containers, err)
	}
	entries, err := os.ReadDir(o.data.runs())
	if err != nil || len(entries) > 0 {
		t.Errorf("run directories left: %v %v", entries, err)
	}
}
