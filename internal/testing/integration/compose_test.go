package integration_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime/docker"
)

// project is a project of docker-compose in a directory of its own.
type project struct {
	t      *testing.T
	engine *docker.Engine
	dir    string
	name   string
	image  string
}

// newProject skips the test where docker-compose is not to be had, in either form.
func newProject(t *testing.T) *project {
	t.Helper()
	engine, _ := buildServer(t)
	dir, err := contextDir()
	if err != nil {
		t.Fatal(err)
	}
	name := unique("compose")
	return &project{t: t, engine: engine, dir: dir, name: name, image: repository + ":" + name}
}

// compose runs docker-compose and returns what it says.
func (p *project) compose(ctx context.Context, args ...string) (string, error) {
	p.t.Helper()
	command := composeCommand(p.t)
	cmd := exec.CommandContext(ctx, command[0], append(command[1:], append([]string{"-p", p.name}, args...)...)...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "AOD_PORT=0", "AOD_IMAGE="+p.image, "DOCKER_SOCK="+engineSocket())
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		p.t.Logf("docker-compose %s: %s", strings.Join(args, " "), failed.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

func composeCommand(t *testing.T) []string {
	t.Helper()
	if exec.Command("docker", "compose", "version").Run() == nil {
		return []string{"docker", "compose"}
	}
	path, err := exec.LookPath("docker-compose")
	if err != nil {
		t.Skip("neither `docker compose` nor docker-compose is installed")
	}
	return []string{path}
}

func TestComposeUnderstandsTheFile(t *testing.T) {
	p := newProject(t)
	if _, err := p.compose(t.Context(), "config", "--quiet"); err != nil {
		t.Error(err)
	}
}

func TestComposeStartsAServerThatRunsUnits(t *testing.T) {
	p := newProject(t)
	composeCommand(t)
	t.Cleanup(p.down)
	// Without the cache for the reason of uncached.
	if _, err := p.compose(t.Context(), "build", "--no-cache"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.compose(t.Context(), "up", "--detach"); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the server answers the commands beside it", func() bool {
		_, err := p.compose(t.Context(), "exec", "-T", "aod", "/aod", "units", "--quiet")
		return err == nil
	})
	out, err := p.compose(t.Context(), "exec", "-T", "aod", "/aod", "run", "--quiet", "hello", "--set", "name=Ada")
	if err != nil || !strings.Contains(out, "Hello, Ada!") {
		t.Errorf("%v: %s", err, out)
	}
}

// down removes the project, and proves that nothing of it is left.
func (p *project) down() {
	ctx := context.Background()
	if _, err := p.compose(ctx, "down", "--volumes", "--rmi", "all", "--timeout", "5"); err != nil {
		p.t.Error(err)
	}
	for _, kind := range []string{"container", "volume", "network"} {
		args := []string{kind, "ls", "--quiet", "--filter", "label=com.docker.compose.project=" + p.name}
		if kind == "container" {
			args = append(args, "--all")
		}
		if out, err := exec.Command("docker", args...).Output(); err != nil || len(out) > 0 {
			p.t.Errorf("%ss left: %s %v", kind, out, err)
		}
	}
	if _, err := p.engine.Image(ctx, p.image); !fault.Is(err, fault.NotFound) {
		p.t.Errorf("the image %s is left: %v", p.image, err)
	}
}
