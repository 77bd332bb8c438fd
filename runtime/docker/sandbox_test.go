package docker_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

// These tests look at a container from inside: what a spec says must hold there.

// testLabels tell what this copy of the tests makes from what another one does.
var testLabels = map[string]string{"aod.test": fmt.Sprint("docker-", os.Getpid())}

// labelLine has what a build makes carry the labels, also where it fails.
var labelLine = "LABEL aod.test=" + testLabels["aod.test"]

// result is what came of a container.
type result struct {
	stdout, stderr string
	state          runtime.ContainerState
}

func sandbox(script string) runtime.ContainerSpec {
	return runtime.ContainerSpec{
		Image: dockertest.Image, Entrypoint: []string{"/bin/sh", "-c"}, Cmd: []string{script},
		Network: "none", User: "65534:65534", ReadOnly: true, Labels: testLabels,
	}
}

// run passes a container through its whole life.
func run(t testing.TB, engine *docker.Engine, spec runtime.ContainerSpec) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	id, err := engine.Create(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), testkit.Patience)
		defer cancel()
		if err := engine.Remove(cleanup, id); err != nil {
			t.Error(err)
		}
	}()
	streams, err := engine.Attach(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	defer streams.Close()
	exits, err := engine.NextExit(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Start(ctx, id); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(&stderr, streams.Stderr)
	}()
	stdout, err := io.ReadAll(streams.Stdout)
	<-done
	if err != nil {
		t.Fatal(err)
	}
	select {
	case exit := <-exits:
		if exit.Err != nil {
			t.Fatal(exit.Err)
		}
	case <-ctx.Done():
		t.Fatal("no exit came")
	}
	state, err := engine.Inspect(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return result{string(stdout), stderr.String(), state}
}

func TestASandboxFromInside(t *testing.T) {
	engine := dockertest.Require(t)
	full := sandbox("")
	full.Limits.OpenFiles, full.Limits.FileBytes, full.Limits.ShmBytes, full.Limits.CPUs = 77, 4096, 1<<20, 4096 // more CPUs than there are
	full.Tmpfs, full.Hostname, full.ExtraHosts = tmp, "capsule", []string{"orchestrator:127.0.0.1"}
	full.WorkingDir, full.Env = "/usr", []string{"A=b"}
	root := sandbox("")
	root.User = "0:0"
	type look struct{ name, script, want string }
	for _, c := range []struct {
		spec  runtime.ContainerSpec
		looks []look
	}{
		{sandbox(""), []look{
			{"no interface but lo", "ls /sys/class/net", "lo\n"},
			{"lo is up", "cat /sys/class/net/lo/flags", "0x9\n"},
			{"no capabilities", "grep CapEff /proc/self/status", "CapEff:\t0000000000000000\n"},
			{"none to be had either", "grep CapBnd /proc/self/status", "CapBnd:\t0000000000000000\n"},
			{"no new privileges", "grep NoNewPrivs /proc/self/status", "NoNewPrivs:\t1\n"},
			{"not root", "id -u", "65534\n"},
			{"no core dumps", "ulimit -c", "0\n"},
		}},
		{root, []look{{"a read-only root", "touch /x 2>/dev/null || echo refused", "refused\n"}}},
		{full, []look{
			{"the working directory", "pwd", "/usr\n"},
			{"open files", "ulimit -n", "77\n"},
			{"the size of a file", "head -c 5000 /dev/zero >/tmp/x; wc -c </tmp/x", "4096\n"},
			{"tmpfs", "grep -c ' /tmp tmpfs .*size=1024k' /proc/mounts", "1\n"},
			{"shared memory", "grep -c ' /dev/shm tmpfs .*size=1024k' /proc/mounts", "1\n"},
			{"the host name", "hostname", "capsule\n"},
			{"extra hosts without network", "grep orchestrator /etc/hosts; ls /sys/class/net", "127.0.0.1\torchestrator\nlo\n"},
			{"the environment", "echo $A", "b\n"},
		}},
	} {
		var scripts []string
		for _, l := range c.looks {
			scripts = append(scripts, "("+l.script+")")
		}
		c.spec.Cmd = []string{strings.Join(scripts, "; echo ==; ")}
		got := run(t, engine, c.spec)
		seen := strings.Split(got.stdout, "==\n")
		if len(seen) != len(c.looks) {
			t.Fatalf("%+v", got)
		}
		for i, l := range c.looks {
			t.Run(l.name, func(t *testing.T) {
				if seen[i] != l.want {
					t.Errorf("%q, stderr %q, want %q", seen[i], got.stderr, l.want)
				}
			})
		}
	}
}

var tmp = map[string]string{"/tmp": "size=1m,mode=1777"}

// ownHosts mounts a hosts file, with which a container does without the engine's
// networking.
func ownHosts(t testing.TB) []runtime.Mount {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(file, []byte("127.0.0.1 localhost orchestrator\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return []runtime.Mount{{Source: file, Target: "/etc/hosts", ReadOnly: true}}
}

func TestASandboxIsOnANetworkOfItsOwn(t *testing.T) {
	engine := localEngine(t)
	host, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	const script = "readlink /proc/self/ns/net; ls /sys/class/net; cat /sys/class/net/lo/flags; getent hosts 127.0.0.1 | grep -o localhost | head -1; wc -l < /proc/net/route"
	for name, mounts := range map[string][]runtime.Mount{"made by the engine": nil, "made by the kernel alone": ownHosts(t)} {
		t.Run(name, func(t *testing.T) {
			spec := sandbox(script)
			spec.Mounts = mounts
			got := run(t, engine, spec)
			namespace, rest, _ := strings.Cut(got.stdout, "\n")
			if !strings.HasPrefix(namespace, "net:") || namespace == host {
				t.Errorf("namespace %s, the host's is %s", namespace, host)
			}
			if rest != "lo\n0x9\nlocalhost\n1\n" {
				t.Errorf("%q, stderr %q", rest, got.stderr)
			}
		})
	}
}

func TestLimitsBite(t *testing.T) {
	engine := dockertest.Require(t)
	t.Run("a memory hog is killed, and it says why", func(t *testing.T) {
		spec := sandbox("x=a; while :; do x=$x$x; done")
		spec.Limits.MemoryBytes = 32 << 20
		var got result
		for range 20 { // a busy engine misses why a container was killed if its shim ends before it has told
			got = run(t, engine, spec)
			if got.state.OOMKilled || got.state.ExitCode != 137 {
				break
			}
		}
		if !got.state.OOMKilled || got.state.ExitCode != 137 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a fork bomb runs out of processes", func(t *testing.T) {
		spec := sandbox("for i in $(seq 50); do sleep 30 & done; wait; echo all")
		spec.Limits.PIDs = 10
		if got := run(t, engine, spec); got.state.ExitCode == 0 || !strings.Contains(got.stderr, "fork") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("one that can't be set is named", func(t *testing.T) {
		spec := sandbox("true")
		spec.Limits.CPUs = 0.001 // the kernel wants 0.01
		id, err := engine.Create(t.Context(), spec)
		if err == nil {
			t.Cleanup(func() { engine.Remove(context.Background(), id) })
			err = engine.Start(t.Context(), id)
		}
		if public := fault.Public(err); public.Kind != fault.Unsupported || !strings.Contains(public.Msg, "limits.cpus") || public.Hint == "" {
			t.Errorf("%v: %q, hint %q", err, public.Msg, public.Hint)
		}
	})
}

// localEngine is an engine that sees this machine's files.
func localEngine(t testing.TB) *docker.Engine {
	t.Helper()
	engine := dockertest.Require(t)
	info, err := engine.Probe(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if !info.Local {
		t.Skip("the engine doesn't see this machine's files")
	}
	return engine
}

func TestMountsAreAsTheSpecSays(t *testing.T) {
	engine := localEngine(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	spec := sandbox("cat /ro/file; touch /ro/x 2>/dev/null || echo refused; touch /rw/x && echo written")
	spec.Mounts = []runtime.Mount{{Source: dir, Target: "/ro", ReadOnly: true}, {Source: dir, Target: "/rw"}}
	if got := run(t, engine, spec); got.stdout != "textrefused\nwritten\n" {
		t.Errorf("%+v", got)
	}
}

func TestACancelledBuildStopsOnTheEngine(t *testing.T) {
	engine := dockertest.Require(t)
	t.Cleanup(func() { removeImages(t, engine) })
	for name, classic := range map[string]bool{"BuildKit": false, "classic": true} {
		t.Run(name, func(t *testing.T) {
			marker := fmt.Sprintf("sleep 4242.%d", os.Getpid()) // no other process's
			ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
			defer cancel()
			seen := make(chan bool, 1)
			go func() {
				seen <- eventually(ctx, func() bool { return processRuns(marker) })
				cancel()
			}()
			_, err := engine.Build(ctx, runtime.BuildSpec{
				Limits: runtime.BuildLimits{Classic: classic}, NoCache: true, Labels: testLabels,
				WriteContext: tarOf("Dockerfile", "FROM "+dockertest.Image+"\n"+labelLine+"\nRUN "+marker+"\n"),
			}, nil)
			if err == nil {
				t.Fatal("the build went on")
			}
			if !<-seen {
				t.Skip("the engine's processes can't be seen from here")
			}
			after, stop := context.WithTimeout(context.Background(), testkit.Patience)
			defer stop()
			if !eventually(after, func() bool { return !processRuns(marker) }) {
				t.Error("the step still runs on the engine")
			}
		})
	}
}

// removeImages removes what failed builds left. The engine is still clearing away
// their containers, which hold the images, so it takes more than one attempt.
func removeImages(t *testing.T, engine *docker.Engine) {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	gone := eventually(ctx, func() bool {
		images, err := engine.ImagesByLabel(ctx, testLabels)
		for _, img := range images {
			_ = engine.RemoveImage(ctx, img.ID)
		}
		return err == nil && len(images) == 0
	})
	if !gone {
		t.Error("images of the test are left on the engine")
	}
}

func eventually(ctx context.Context, condition func() bool) bool {
	for !condition() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
	return true
}

// processRuns looks for a command line among this machine's processes.
func processRuns(command string) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	want := strings.ReplaceAll(command, " ", "\x00") + "\x00"
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && string(line) == want {
			return true
		}
	}
	return false
}
