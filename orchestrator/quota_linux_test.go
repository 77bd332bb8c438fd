package orchestrator

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
	"github.com/agent-on-demand/aod/runtime/enginetest"
	"github.com/agent-on-demand/aod/runtime/quota"
)

// keeping is an engine whose programs keep their files in their project.
type keeping struct{ *enginetest.Fake }

func (keeping) KeepsProjects() bool { return true }

// inShell is a program that runs a script in /io, as a user whom quotas bind.
func inShell(script string) enginetest.Program {
	return func(ctx context.Context, spec runtime.ContainerSpec, stdout, stderr io.Writer) int {
		for _, m := range spec.Mounts {
			if m.Target == "/io" {
				command := exec.CommandContext(ctx, "sh", "-c", `cd "$0" && exec setpriv --reuid 65532 --regid 65532 --clear-groups sh -c "$1"`, m.Source, script)
				command.Stdout, command.Stderr = stdout, stderr
				_ = command.Run() // its exit code tells
				return command.ProcessState.ExitCode()
			}
		}
		return 1
	}
}

func TestTheKernelKeepsTheDiskLimit(t *testing.T) {
	t.Parallel()
	disk := testkit.QuotaDisk(t)
	limits := runtime.Limits{DiskBytes: 8 << 20}
	cases := []struct {
		name, script string
		outcome      api.Outcome
		says         string
	}{
		{"deleted files that are open", `exec 3>x && rm x && head -c 20M /dev/zero >&3`, api.LimitExceeded, "wrote more than 8388608 bytes to /io"},
		{"a file that it removes at its end", `head -c 20M /dev/zero > x; rm x; false`, api.LimitExceeded, "wrote more than 8388608 bytes to /io"},
		{"one that goes on without", `head -c 20M /dev/zero > x || rm x; echo '{"n":1}' > output.json`, api.Success, ""},
		{"one that keeps the limit", `mkdir output/d && head -c 1M /dev/zero > output/d/f && echo '{"n":1}' > output.json`, api.Success, ""},
		{"one that fails for itself", `exit 3`, api.CapsuleError, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			fake := enginetest.NewFake(inShell(c.script))
			fake.AddImage(runtime.Image{ID: "sha256:debian", Tags: []string{dockertest.Image}, Cmd: []string{"bash"}, OS: "linux", Arch: "amd64"})
			dir := t.TempDir()
			for name, content := range probeFiles {
				write(t, filepath.Join(dir, name), content)
			}
			loaded, err := capsule.Load(dir)
			if err != nil {
				t.Fatal(err)
			}
			script := filepath.Join(t.TempDir(), "script")
			write(t, script, "")
			input, err := contract.Decode([]byte("{}"), contract.DefaultMaxBytes)
			if err != nil {
				t.Fatal(err)
			}
			home, out := filepath.Join(disk, "home"), filepath.Join(disk, c.name)
			o := newLocal(t, container.New(keeping{fake}, container.Options{Limits: limits}), Options{Home: home, Limits: limits})
			ended, err := o.Run(trusted.Context(t), Request{
				Request: run.Request{Unit: unit.Of(loaded), Input: input, Files: []run.InputFile{{Field: "script", Path: script}}, Timeout: time.Minute},
				OutDir:  out,
			})
			if closed := o.Close(); closed != nil || err != nil {
				t.Fatal(err, closed)
			}
			if ended.Record.Outcome != c.outcome || !strings.Contains(said(ended.Record), c.says) {
				t.Errorf("%s\n%s", said(ended.Record), show(ended.Record))
			}
			for _, f := range ended.Record.Files {
				if path := filepath.Join(out, filepath.FromSlash(f.Name)); quota.Of(path).Given() {
					t.Errorf("%s is in a project still", f.Name)
				}
			}
			if left, err := os.ReadDir(filepath.Join(home, "runs")); err == nil && len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}
