package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/testing/programtest"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// installed builds aod as `go install` does of a clean clone: without the small programs for
// sandboxes, which are built before and not committed.
func installed(t *testing.T) string {
	t.Helper()
	small, err := filepath.Glob("../../runtime/initbin/bin/aod-*")
	if err != nil {
		t.Fatal(err)
	}
	removed := map[string]string{}
	for _, path := range small {
		if path, err = filepath.Abs(path); err != nil {
			t.Fatal(err)
		}
		removed[path] = ""
	}
	dir := t.TempDir()
	overlay, file := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "aod")
	raw, err := json.Marshal(map[string]any{"Replace": removed})
	if err != nil {
		t.Fatal(err)
	}
	write(t, string(raw), overlay)
	if err := programtest.Build(file, "-overlay", overlay); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAnInstalledAODIsItsOwnInit(t *testing.T) {
	t.Parallel()
	dockertest.Require(t)
	aod := installed(t)
	examples, err := filepath.Abs("../../examples/capsules")
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	data := filepath.Join(work, "data")
	call := func(t *testing.T, env []string, args ...string) (stdout, stderr string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), aod, args...)
		cmd.Dir, cmd.Env = work, slices.Concat(os.Environ(), []string{"AOD_DATA=" + data, "AOD_SERVER="}, env)
		var out, log strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &log
		if err := cmd.Run(); err != nil {
			t.Fatalf("aod %v: %v\n%s%s", args, err, &out, &log)
		}
		return out.String(), log.String()
	}
	elsewhere := []string{"AOD_ENGINE_REMOTE=1"}
	t.Run("and the doctor says so", func(t *testing.T) {
		stdout, _ := call(t, nil, "doctor")
		contains(t, stdout, "sandbox init", "aod itself, for engines on linux/"+runtime.GOARCH+" alone")
	})
	for name, env := range map[string][]string{"here": nil, "elsewhere": elsewhere} {
		t.Run("of a run with an engine "+name, func(t *testing.T) {
			stdout, _ := call(t, env, "run", "--json", filepath.Join(examples, "hello"), "--set", "name=Ada")
			var record api.Record
			if err := json.Unmarshal([]byte(stdout), &record); err != nil || record.Outcome != api.Success {
				t.Fatalf("%v: %s", err, stdout)
			}
			if record.Usage == nil || record.Usage.CPUSeconds <= 0 {
				t.Errorf("its init reported %+v", record.Usage)
			}
		})
	}
	// The API is behind the init's relay here, and behind the far end of the tunnel elsewhere.
	for name, env := range map[string][]string{"here": nil, "elsewhere": elsewhere} {
		t.Run("of runs that call each other with an engine "+name, func(t *testing.T) {
			caller := filepath.Join(t.TempDir(), "caller")
			write(t, "FROM aod/base\nCOPY . /capsule\n", caller, "Dockerfile")
			write(t, "name: caller\n", caller, "agent.yaml")
			write(t, "import aod\n\naod.run()\n", caller, "run.py")
			write(t, "- {name: greet, capsule: hello, description: Greets.}\n", caller, "tools.yaml")
			write(t, `{"input": {"type": "object"}, "output": {"type": "object"}}`, caller, "schema.json")
			write(t, "import aod\n\n\ndef execute(payload):\n    return aod.handoff(\"hello\", {\"name\": \"Ada\"}).output\n", caller, "src", "main.py")
			stdout, _ := call(t, env, "run", caller, "--units", examples)
			contains(t, stdout, "Ada")
		})
	}
	if copies, err := filepath.Glob(filepath.Join(data, "bin", "aod-self-*")); err != nil || len(copies) != 1 {
		t.Errorf("its copies are %v, %v", copies, err)
	}
}
