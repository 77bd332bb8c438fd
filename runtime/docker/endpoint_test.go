package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
)

// surroundings is an environment of its own below a directory.
func surroundings(t *testing.T, vars map[string]string) environment {
	t.Helper()
	// Socket paths are short, and t.TempDir() is not.
	dir, err := os.MkdirTemp("", "aod")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if runtimeDir := vars["XDG_RUNTIME_DIR"]; runtimeDir != "" {
		vars["XDG_RUNTIME_DIR"] = filepath.Join(dir, runtimeDir)
	}
	return environment{getenv: func(name string) string { return vars[name] }, home: filepath.Join(dir, "home"), root: dir}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func listen(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
}

func addContext(t *testing.T, env environment, name, host string) {
	t.Helper()
	id := sha256.Sum256([]byte(name))
	meta, err := json.Marshal(map[string]any{"Name": name, "Endpoints": map[string]any{"docker": map[string]any{"Host": host}}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(env.configDir(), "contexts/meta", hex.EncodeToString(id[:]), "meta.json"), string(meta))
}

func TestFindEndpoint(t *testing.T) {
	find := func(t *testing.T, host string, env environment, want string) endpoint {
		t.Helper()
		at, err := findEndpoint(host, env)
		if err != nil || at.host != want {
			t.Errorf("found %q, %v; want %q", at.host, err, want)
		}
		return at
	}
	current := `{"auths":{},"currentContext":"work"}`
	t.Run("what the options name comes first", func(t *testing.T) {
		find(t, "tcp://a:1", surroundings(t, map[string]string{"DOCKER_HOST": "tcp://b:1"}), "tcp://a:1")
	})
	t.Run("DOCKER_HOST comes before the context", func(t *testing.T) {
		env := surroundings(t, map[string]string{"DOCKER_HOST": "tcp://b:1"})
		write(t, filepath.Join(env.configDir(), "config.json"), current)
		find(t, "", env, "tcp://b:1")
	})
	t.Run("the current context is followed", func(t *testing.T) {
		env := surroundings(t, nil)
		write(t, filepath.Join(env.configDir(), "config.json"), current)
		addContext(t, env, "work", "unix:///run/work.sock")
		at := find(t, "", env, "unix:///run/work.sock")
		if !strings.Contains(at.hint(), "the Docker context work") {
			t.Errorf("hint %q", at.hint())
		}
	})
	t.Run("DOCKER_CONTEXT comes before the current context", func(t *testing.T) {
		env := surroundings(t, map[string]string{"DOCKER_CONTEXT": "lab"})
		write(t, filepath.Join(env.configDir(), "config.json"), current)
		addContext(t, env, "lab", "unix:///run/lab.sock")
		find(t, "", env, "unix:///run/lab.sock")
	})
	t.Run("DOCKER_CONFIG moves the configuration", func(t *testing.T) {
		env := surroundings(t, map[string]string{"DOCKER_CONFIG": t.TempDir()})
		write(t, filepath.Join(env.configDir(), "config.json"), current)
		addContext(t, env, "work", "tcp://c:1")
		find(t, "", env, "tcp://c:1")
	})
	t.Run("a host without a scheme is TCP", func(t *testing.T) {
		find(t, "engine:2375", surroundings(t, nil), "tcp://engine:2375")
	})
	t.Run("the usual socket comes before a rootless one", func(t *testing.T) {
		env := surroundings(t, map[string]string{"XDG_RUNTIME_DIR": "run"})
		listen(t, env.root+defaultSocket)
		listen(t, filepath.Join(env.root, "run/docker.sock"))
		find(t, "", env, "unix://"+env.root+defaultSocket)
	})
	t.Run("a rootless socket is found, and a file of its name is none", func(t *testing.T) {
		env := surroundings(t, map[string]string{"XDG_RUNTIME_DIR": "run"})
		write(t, filepath.Join(env.root, "run/docker.sock"), "")
		listen(t, filepath.Join(env.home, ".colima/default/docker.sock"))
		find(t, "", env, "unix://"+filepath.Join(env.home, ".colima/default/docker.sock"))
	})
	t.Run("without any socket it is the usual one", func(t *testing.T) {
		env := surroundings(t, nil)
		find(t, "", env, "unix://"+env.root+defaultSocket)
	})
}

func TestEndpointsThatAreRefused(t *testing.T) {
	refuse := func(t *testing.T, host string, env environment, kind fault.Kind, hint string) {
		t.Helper()
		_, err := findEndpoint(host, env)
		if !fault.Is(err, kind) || !strings.Contains(fault.Public(err).Hint, hint) {
			t.Errorf("error %v, hint %q", err, fault.Public(err).Hint)
		}
	}
	t.Run("an unknown scheme", func(t *testing.T) {
		refuse(t, "", surroundings(t, map[string]string{"DOCKER_HOST": "gopher://x"}), fault.Unsupported, "DOCKER_HOST must be")
	})
	t.Run("a context that isn't there", func(t *testing.T) {
		refuse(t, "", surroundings(t, map[string]string{"DOCKER_CONTEXT": "../../x"}), fault.Unavailable, "docker context use")
	})
	t.Run("a configuration that isn't JSON", func(t *testing.T) {
		env := surroundings(t, nil)
		write(t, filepath.Join(env.configDir(), "config.json"), "{")
		refuse(t, "", env, fault.Unavailable, "DOCKER_HOST")
	})
	t.Run("a password in the host is not shown", func(t *testing.T) {
		if text := (endpoint{host: "tcp://me:hunter2@h:1"}).String(); strings.Contains(text, "hunter2") {
			t.Error(text)
		}
	})
}

func TestAnEngineIsElsewhereWhereItHasALinuxOfItsOwn(t *testing.T) {
	for _, c := range []struct {
		system, said string
		want         bool
	}{{"linux", "", false}, {"linux", "1", true}, {"darwin", "", true}, {"windows", "", true}} {
		env := environment{system: c.system, getenv: func(name string) string {
			if name == RemoteEnv {
				return c.said
			}
			return ""
		}}
		if got := env.remote(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
