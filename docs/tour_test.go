package docs_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// tourTime is far longer than a tour takes, also where images have to be built on a busy machine.
const tourTime = 15 * time.Minute

// Whoever pastes the guide's blocks for a shell one after the other sees what stands
// below each: a json block has the shape of what was printed, and the lines of a text
// block are among those that were.
func TestTheToursShownWork(t *testing.T) {
	dockertest.Require(t)
	for _, name := range []string{"server.md", "server-api.md", "warm-starts.md", "backup.md", "models.md", "agents-ai.md", "skills.md", "evals.md", "mcp.md", "flows.md", "schedules.md", "agents.md", "chat.md", "network.md", "a2a.md", "team.md", "webhooks.md", "workers.md"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "network.md" {
				alone(t)
			}
			follow(t, name)
		})
	}
}

// follow runs the blocks of a guide, and compares what is shown below each.
func follow(t *testing.T, name string, env ...string) {
	t.Helper()
	_, blocks := readGuide(t, name)
	scripts, shown := stops(blocks)
	if len(scripts) == 0 {
		t.Fatalf("%s has nothing to run", name)
	}
	for i, said := range tour(t, scripts, titledFiles(blocks), env...) {
		for _, b := range shown[i] {
			compare(t, scripts[i], b, said)
		}
	}
}

// alone has another copy of this test wait: the guide's own programs have ports that are fixed.
func alone(t *testing.T) {
	t.Helper()
	name := filepath.Join(os.TempDir(), fmt.Sprintf("aod-test-guide-ports-%d", os.Getuid()))
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}

// titledFiles are the blocks of a tour that are files.
func titledFiles(blocks []block) map[string]string {
	files := map[string]string{}
	for _, b := range blocks {
		if b.title != "" {
			files[b.title] = b.text
		}
	}
	return files
}

// stops returns the blocks for a shell, and for each what is shown below it.
func stops(blocks []block) (scripts []string, shown [][]block) {
	for _, b := range blocks {
		switch {
		case b.language == "sh":
			scripts, shown = append(scripts, b.text), append(shown, nil)
		case b.title == "" && (b.language == "json" || b.language == "text") && len(shown) > 0:
			shown[len(shown)-1] = append(shown[len(shown)-1], b)
		}
	}
	return scripts, shown
}

// tour runs scripts in one shell, in a directory that has the examples, with further variables, and returns
// what each printed. Files are laid there for them.
func tour(t *testing.T, scripts []string, files map[string]string, env ...string) []string {
	t.Helper()
	requirePrograms(t, "curl", "jq", "tar")
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS("../examples")); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		writeFile(t, filepath.Join(dir, name), text)
	}
	return paste(t, dir, scripts, slices.Concat(os.Environ(), []string{
		"PATH=" + filepath.Dir(program.Path(t)) + ":" + os.Getenv("PATH"),
		"AOD_LISTEN=127.0.0.1:0", "AOD_SERVER=", "AOD_TOKEN=", "AOD_TOKEN_FILE=", "AOD_CA=", "AOD_PIN=", "AOD_MODELS=", "AOD_UPSTREAMS=", "OPENAI_API_KEY=", "ANTHROPIC_API_KEY=",
	}, env))
}

// paste runs scripts one after the other in one shell, which starts in dir, and returns what
// each printed. A server that still runs is stopped, and not killed: a killed one may leave a
// container that it was about to start, and nobody starts again over its data directory.
func paste(t *testing.T, dir string, scripts, env []string) []string {
	t.Helper()
	const between = "\x1e"
	whole := "set -eu\ntrap 'kill ${!:-} 2>/dev/null && wait ${!:-} || true' EXIT\n" + strings.Join(scripts, "printf '"+between+"'\n")
	ctx, cancel := context.WithTimeout(t.Context(), tourTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", whole)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // the server too
	cmd.Dir = dir
	cmd.Env = env
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.WaitDelay = testkit.Patience // for the end of what is printed, which is read by others
	err := cmd.Run()
	printed := strings.Split(out.String(), between)
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "serve.log"))
		t.Fatalf("%v in\n%s\nit printed\n%s\nand said\n%s\nserver:\n%s", err, scripts[len(printed)-1], printed[len(printed)-1], &said, log)
	}
	return printed
}

// requirePrograms skips a test where a program is missing that a guide uses, and fails it
// where the engine isn't allowed to be missing either.
func requirePrograms(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err == nil {
			continue
		}
		if os.Getenv("AOD_TEST_DOCKER") == "require" {
			t.Fatalf("the guide needs %s", name)
		}
		t.Skipf("the guide needs %s", name)
	}
}

func compare(t *testing.T, script string, shown block, printed string) {
	t.Helper()
	var err error
	if shown.language == "json" {
		err = sameShape(shown.text, printed)
	} else {
		err = sameLines(shown.text, printed)
	}
	if err != nil {
		t.Errorf("%v\nafter\n%s\nit printed\n%s", err, script, printed)
	}
}
