package integration_test

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container" //nolint:depguard // testcontainers is set up with its types
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
	"gopkg.in/yaml.v3"

	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime/docker"
)

const port = "7070/tcp"

// server is `aod serve` in a container, as locked up as docker-compose.yml has it.
type server struct {
	t         *testing.T
	engine    *docker.Engine
	docker    *testcontainers.DockerClient
	container *testcontainers.DockerContainer
	volume    string
	client    *client.Client
	tokenFile string
	runs      []string // those that were submitted
}

// service is what docker-compose.yml says of the server.
type service struct {
	Environment map[string]string `yaml:"environment"`
	ReadOnly    bool              `yaml:"read_only"`
	Tmpfs       []string          `yaml:"tmpfs"`
	SecurityOpt []string          `yaml:"security_opt"`
	CapDrop     []string          `yaml:"cap_drop"`
	CapAdd      []string          `yaml:"cap_add"`
}

func composed(t *testing.T) service {
	t.Helper()
	raw, err := os.ReadFile("../../../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]service `yaml:"services"`
	}
	if err := yaml.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	return file.Services["aod"]
}

// startServer starts a server that is gone, with all that it made, at the end of the test.
func startServer(t *testing.T, env map[string]string) *server {
	t.Helper()
	engine, image := buildServer(t)
	cli, err := testcontainers.NewDockerClientWithOpts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, engine: engine, docker: cli, volume: unique("data"), tokenFile: cmp.Or(env["AOD_TOKEN_FILE"], "/data/server/token")}
	t.Cleanup(s.nothingLeft)
	service := composed(t)
	s.container, err = testcontainers.Run(t.Context(), image,
		testcontainers.WithLabels(map[string]string{testLabel: testRun}),
		testcontainers.WithEnv(service.Environment),
		testcontainers.WithEnv(env),
		testcontainers.WithExposedPorts(port),
		testcontainers.WithMounts(testcontainers.VolumeMount(s.volume, "/data")),
		testcontainers.WithHostConfigModifier(func(host *container.HostConfig) { service.apply(t, host) }),
		testcontainers.WithWaitStrategyAndDeadline(testkit.Patience,
			wait.ForHTTP("/readyz").WithPort(port).WithStartupTimeout(testkit.Patience).WithPollInterval(50*time.Millisecond)),
	)
	if err != nil {
		s.showLog()
		t.Fatal(err)
	}
	s.connect()
	return s
}

// apply does what docker-compose does with the file.
func (s service) apply(t *testing.T, host *container.HostConfig) {
	units, err := filepath.Abs("../../../examples/capsules")
	if err != nil {
		t.Error(err)
	}
	host.Binds = []string{engineSocket() + ":/var/run/docker.sock", units + ":/units:ro"}
	host.ReadonlyRootfs, host.SecurityOpt = s.ReadOnly, s.SecurityOpt
	host.CapDrop, host.CapAdd = s.CapDrop, s.CapAdd
	host.Tmpfs = map[string]string{}
	for _, mount := range s.Tmpfs {
		dir, options, _ := strings.Cut(mount, ":")
		host.Tmpfs[dir] = options
	}
}

// engineSocket is where the engine's own host has its socket.
func engineSocket() string {
	if path, ok := strings.CutPrefix(os.Getenv("DOCKER_HOST"), "unix://"); ok {
		return path
	}
	return "/var/run/docker.sock"
}

// connect makes a client of the server, whose port is another one after each start.
func (s *server) connect() {
	s.t.Helper()
	address, err := s.container.PortEndpoint(s.t.Context(), port, "http")
	if err != nil {
		s.t.Fatal(err)
	}
	s.client, err = client.New(client.Options{
		Server: address, Token: s.token(), HTTP: &http.Client{Transport: &http.Transport{DisableCompression: true}},
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) token() string {
	s.t.Helper()
	file, err := s.container.CopyFileFromContainer(s.t.Context(), s.tokenFile)
	if err != nil {
		s.t.Fatal(err)
	}
	defer file.Close()
	token, err := io.ReadAll(file)
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(token))
}

// exec runs a command in the server's container.
func (s *server) exec(command ...string) (code int, output string) {
	s.t.Helper()
	code, reader, err := s.container.Exec(s.t.Context(), command)
	if err != nil {
		s.t.Fatal(err)
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		s.t.Fatal(err)
	}
	return code, string(text)
}

// kill gives the server no time for anything, and returns when it is dead.
func (s *server) kill() {
	s.t.Helper()
	if err := s.docker.ContainerKill(s.t.Context(), s.container.GetContainerID(), "SIGKILL"); err != nil {
		s.t.Fatal(err)
	}
	testkit.Eventually(s.t, "the server is dead", func() bool {
		state, err := s.container.State(s.t.Context())
		return err == nil && !state.Running
	})
}

// restart starts the same container again.
func (s *server) restart() {
	s.t.Helper()
	if err := s.container.Start(s.t.Context()); err != nil {
		s.showLog()
		s.t.Fatal(err)
	}
	s.connect()
}

func (s *server) showLog() {
	if s.container == nil {
		return
	}
	logs, err := s.container.Logs(context.Background())
	if err != nil {
		return
	}
	defer logs.Close()
	text, _ := io.ReadAll(io.LimitReader(logs, 16<<20))
	s.t.Logf("the end of the server's log:\n%s", text[max(0, len(text)-16<<10):])
}
