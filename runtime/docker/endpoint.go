package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"

	"github.com/docker/cli/cli/connhelper"
	"github.com/docker/docker/client"

	"github.com/agent-on-demand/aod/api/fault"
)

const (
	defaultSocket = "/var/run/docker.sock"
	configLimit   = 1 << 20 // bytes read of a Docker configuration file
)

// endpoint is where an engine is, and who said so.
type endpoint struct {
	host   string // "unix:///var/run/docker.sock", "tcp://host:port"
	source string // "DOCKER_HOST", "the Docker context x"; "" when nobody chose
}

func (at endpoint) local() bool {
	return strings.HasPrefix(at.host, "unix://") || strings.HasPrefix(at.host, "npipe://")
}

func (at endpoint) ssh() bool { return strings.HasPrefix(at.host, "ssh://") }

func (at endpoint) socket() string {
	path, _ := strings.CutPrefix(at.host, "unix://")
	return path
}

// String returns the host without a password that somebody wrote into it.
func (at endpoint) String() string {
	if u, err := url.Parse(at.host); err == nil {
		return u.Redacted()
	}
	return "with an unreadable address"
}

func (at endpoint) hint() string {
	switch {
	case at.source != "":
		return "the address comes from " + at.source + ": check it, and that the engine there is running"
	case at.local():
		return "start Docker: `sudo systemctl start docker`, or Docker Desktop; if the engine is elsewhere, name it " +
			"in DOCKER_HOST"
	}
	return "check the address, and that the engine there is running"
}

// environment is what findEndpoint looks at, so that tests can have their own.
type environment struct {
	getenv func(string) string
	home   string
	root   string // before absolute socket paths; "" outside tests
	system string // Go's word for the operating system
}

// remote reports whether an engine at a socket of this machine is elsewhere nevertheless.
func (env environment) remote() bool { return env.getenv(RemoteEnv) != "" || env.system != "linux" }

func systemEnvironment() environment {
	home, _ := os.UserHomeDir() // without a home there is no configuration to read
	return environment{getenv: os.Getenv, home: home, system: goruntime.GOOS}
}

func (env environment) configDir() string {
	if dir := env.getenv("DOCKER_CONFIG"); dir != "" {
		return dir
	}
	return filepath.Join(env.home, ".docker")
}

// findEndpoint decides in the order of the docker command: what was asked for,
// DOCKER_HOST, the context, a socket that exists.
func findEndpoint(host string, env environment) (endpoint, error) {
	if host != "" {
		return checkEndpoint(endpoint{host, "the chosen host"})
	}
	if host := env.getenv("DOCKER_HOST"); host != "" {
		return checkEndpoint(endpoint{host, "DOCKER_HOST"})
	}
	name, err := env.currentContext()
	if err != nil {
		return endpoint{}, err
	}
	if name != "" && name != "default" {
		host, err := env.contextHost(name)
		if err != nil {
			return endpoint{}, err
		}
		return checkEndpoint(endpoint{host, "the Docker context " + name})
	}
	return endpoint{host: "unix://" + env.firstSocket()}, nil
}

func checkEndpoint(at endpoint) (endpoint, error) {
	if !strings.Contains(at.host, "://") {
		at.host = "tcp://" + at.host
	}
	scheme, _, _ := strings.Cut(at.host, "://")
	switch scheme {
	case "unix", "tcp", "npipe", "ssh":
		return at, nil
	}
	return at, fault.New(fault.Unsupported, "the Docker host %s has an unknown scheme", at).
		WithHint("%s must be unix://PATH, tcp://HOST:PORT or ssh://USER@HOST", at.source)
}

func (env environment) currentContext() (string, error) {
	if name := env.getenv("DOCKER_CONTEXT"); name != "" {
		return name, nil
	}
	var config struct{ CurrentContext string }
	err := readJSON(filepath.Join(env.configDir(), "config.json"), &config)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fault.Wrap(fault.Unavailable, err, "Docker's config.json can't be read").
			WithHint("fix it, or name the engine in DOCKER_HOST")
	}
	return config.CurrentContext, nil
}

func (env environment) contextHost(name string) (string, error) {
	id := sha256.Sum256([]byte(name))
	var meta struct {
		Endpoints struct {
			Docker struct{ Host string } `json:"docker"`
		}
	}
	err := readJSON(filepath.Join(env.configDir(), "contexts", "meta", hex.EncodeToString(id[:]), "meta.json"), &meta)
	if err != nil || meta.Endpoints.Docker.Host == "" {
		return "", fault.Wrap(fault.Unavailable, err, "the Docker context %q has no endpoint", name).
			WithHint("choose another with `docker context use`, or name the engine in DOCKER_HOST")
	}
	return meta.Endpoints.Docker.Host, nil
}

// firstSocket returns the first of Docker's usual sockets that exists: the system's,
// rootless Docker's, Docker Desktop's, Colima's. If none does it is the system's, so
// that an error names what everybody knows.
func (env environment) firstSocket() string {
	paths := []string{env.root + defaultSocket}
	if dir := env.getenv("XDG_RUNTIME_DIR"); dir != "" {
		paths = append(paths, filepath.Join(dir, "docker.sock"))
	}
	paths = append(paths,
		filepath.Join(env.home, ".docker/run/docker.sock"),
		filepath.Join(env.home, ".docker/desktop/docker.sock"),
		filepath.Join(env.home, ".colima/default/docker.sock"))
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.Mode().Type() == fs.ModeSocket {
			return path
		}
	}
	return paths[0]
}

func readJSON(path string, into any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return json.NewDecoder(io.LimitReader(f, configLimit)).Decode(into)
}

// dialled returns the host as the client is to know it, and how to get there. For ssh that
// is, as with the docker command, the program ssh with the user's own configuration, which
// runs `docker system dial-stdio` over there: once for each connection.
func (at endpoint) dialled() (host string, dial client.Opt, err error) {
	helper, err := connhelper.GetConnectionHelper(at.host)
	if err != nil {
		return "", nil, err
	}
	if helper == nil {
		return at.host, func(*client.Client) error { return nil }, nil
	}
	return helper.Host, client.WithDialContext(helper.Dialer), nil
}
