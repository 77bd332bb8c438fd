//go:build linux

package pid1

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime/initbin"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

// label tells what this copy of the tests makes from what another one does.
var label = fmt.Sprintf("aod.test=init-%d", os.Getpid())

// harness is what all sandboxes of this test run share.
type harness struct {
	dir    string // holds init
	image  string // FROM scratch with the probe
	nest   nest
	reason string // why there is none, so that tests skip
	err    error
}

var setUp = sync.OnceValue(func() (f harness) {
	if out, err := exec.Command("docker", "version", "--format", "{{.Server.Version}}").CombinedOutput(); err != nil {
		return harness{reason: "no engine: " + strings.TrimSpace(string(out))}
	}
	if f.dir, f.err = os.MkdirTemp("", "aod-init-test-"); f.err != nil {
		return f
	}
	if f.err = errors.Join(
		build(filepath.Join(f.dir, "init"), initPackage()),
		build(filepath.Join(f.dir, "probe"), "./testdata/probe"),
	); f.err == nil {
		f.image, f.err = importImage(f.dir)
	}
	if f.err == nil {
		f.nest, f.err = newNest(f.dir, f.image)
	}
	return f
})

// initPackage is the program that is tested. AOD_TEST_INIT=aod tests aod as the init, which it is
// where no small one is embedded.
func initPackage() string {
	return "../../cmd/" + cmp.Or(os.Getenv("AOD_TEST_INIT"), path.Base(smallInit))
}

const smallInit = "../../cmd/aod-init"

var used bool // whether setUp was called; tests run one after the other

func TestMain(m *testing.M) {
	code := m.Run()
	if used && setUp().reason == "" {
		if err := tearDown(setUp()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// tearDown removes what setUp made and finds what a test has left.
func tearDown(f harness) error {
	err := f.nest.close()
	left, listErr := exec.Command("docker", "ps", "-aq", "--filter", "label="+label).Output()
	if err = errors.Join(err, listErr); err == nil && len(left) > 0 {
		err = fmt.Errorf("containers were left: %q", left)
	}
	if f.image != "" {
		err = errors.Join(err, exec.Command("docker", "rmi", "-f", f.image).Run())
	}
	return errors.Join(err, os.RemoveAll(f.dir))
}

func build(out, pkg string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, text)
	}
	return nil
}

// importImage makes an image of nothing but the probe and some things that don't start.
func importImage(dir string) (string, error) {
	probe, err := os.ReadFile(filepath.Join(dir, "probe"))
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range []struct {
		name    string
		mode    int64
		content []byte
	}{
		{"probe", 0o755, probe},
		{"bin/not-executable", 0o644, probe},
		{"bin/no-loader", 0o755, []byte("#!/missing/interpreter\n")},
		{"bin/no-format", 0o755, []byte("echo hello\n")},
		{"out", 0o644, nil}, // for what is mounted there
		{"run/aod/init", 0o755, nil},
	} {
		head := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.content))}
		if err := errors.Join(w.WriteHeader(head), second(w.Write(f.content))); err != nil {
			return "", err
		}
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	image := fmt.Sprintf("aod-test-init:%d", os.Getpid())
	cmd := exec.Command("docker", "import", "--change", "LABEL "+label, "-", image)
	cmd.Stdin = &b
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("docker import: %w: %s", err, out)
	}
	return image, nil
}

func second(_ int, err error) error { return err }

// sandbox is as locked up as AOD's are: a place in the nest, or a container where only an engine will do.
type sandbox struct {
	engine  []string // flags of a container of its own, such as limits; nil: it is in the nest
	env     []string
	workdir string
	out     string // the file that is /out, if any
	noFile  bool   // no /run/aod/report
	left    string // what stands in it before
	api     string // the directory that is /run/aod, if any
	program []string
}

type result struct {
	code           int
	stdout, stderr string
	raw            []byte // the report
}

// report is the parsed report; the test fails when it isn't a good one.
func (r result) report(t *testing.T) initreport.Report {
	t.Helper()
	report, err := initbin.ParseReport(r.raw)
	if err != nil {
		t.Fatalf("%v: %.300q\n%+v", err, r.raw, r)
	}
	return report
}

// inSandbox runs the program as the sandbox's main program.
func inSandbox(t *testing.T, program ...string) result {
	t.Helper()
	return sandbox{program: program}.run(t, nil)
}

// run runs the sandbox to its end. With whenReady, it is called when the program has
// printed "ready".
func (s sandbox) run(t *testing.T, whenReady func(container string)) result {
	t.Helper()
	f := need(t)
	report := filepath.Join(f.dir, fmt.Sprintf("report-%d", reports.Add(1)))
	if err := errors.Join(os.WriteFile(report, []byte(s.left), 0o666), os.Chmod(report, 0o666)); err != nil {
		t.Fatal(err)
	}
	if s.api == "" {
		s.api = newAPIServer(t, nil).dir
	}
	var stdout, stderr bytes.Buffer
	ready := &readyWriter{buffer: &stdout, seen: make(chan struct{})}
	start := s.inNest
	if s.engine != nil {
		start = s.inContainer
	}
	wait := start(t, f, report, ready, &stderr)
	if whenReady != nil {
		select {
		case <-ready.seen:
			whenReady(containerName(t))
		case <-time.After(testkit.Patience):
			t.Error("the program never got ready")
		}
	}
	code := wait()
	raw, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	return result{code, stdout.String(), stderr.String(), raw}
}

var reports atomic.Int64

// notInNames is what the engine doesn't take in a container's name.
var notInNames = regexp.MustCompile(`[^a-zA-Z0-9_.-]+`)

func containerName(t *testing.T) string {
	return fmt.Sprintf("aod-test-init-%d-%s", os.Getpid(), notInNames.ReplaceAllString(t.Name(), "-"))
}

// inContainer starts the sandbox as a container. Wait returns the exit code at its end.
func (s sandbox) inContainer(t *testing.T, f harness, report string, stdout, stderr io.Writer) (wait func() int) {
	t.Helper()
	name := containerName(t)
	t.Cleanup(func() { _ = exec.Command("docker", "rm", "-f", name).Run() }) // it is usually gone
	args := append([]string{
		"run", "--rm", "--name", name, "--label", label, "--network", "none", "--user", "65532:65532",
		"--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--read-only", "--pids-limit", "64",
		"--memory", "64m", "--memory-swap", "64m", "--volume", filepath.Join(f.dir, "init") + ":/run/aod/init:ro",
		"--volume", s.api + ":/run/aod:ro", // below the others, wherever it stands
		"--volume", report + ":" + initreport.Path,
	}, s.engine...)
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "docker", append(append(args, "--entrypoint", "/run/aod/init", f.image), s.program...)...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() int {
		var exit *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode()
	}
}

// need returns the harness, or ends the test.
func need(t *testing.T) harness {
	t.Helper()
	used = true
	f := setUp()
	skipOrFail(t, f)
	return f
}

func skipOrFail(t *testing.T, f harness) {
	t.Helper()
	switch {
	case f.err != nil:
		t.Fatal(f.err)
	case f.reason != "" && os.Getenv("AOD_TEST_DOCKER") == "require":
		t.Fatal(f.reason)
	case f.reason != "":
		t.Skip(f.reason)
	}
}
