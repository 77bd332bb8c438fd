package docker_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
	"github.com/agent-on-demand/aod/runtime/initbin"
)

// carried is a run whose files are carried to the engine and back.
type carried struct {
	engine *docker.Engine
	spec   runtime.Spec
	layout runtime.Layout
}

// newCarried makes a run of a script on an engine that is told not to see this host's
// files. At the end nothing of it is left there.
func newCarried(t *testing.T, script string) *carried {
	t.Helper()
	t.Setenv(docker.RemoteEnv, "yes")
	engine := dockertest.Require(t)
	image, err := engine.Image(t.Context(), dockertest.Image)
	if err != nil {
		t.Fatal(err)
	}
	image.Entrypoint, image.Cmd = []string{"/bin/sh", "-c"}, []string{script}
	initFile, err := new(initbin.Installer).Install(t.TempDir(), image.Arch)
	if err != nil {
		t.Fatal(err)
	}
	layout, err := runtime.NewLayoutWith(t.TempDir(), initFile, inputDir(t))
	if err != nil {
		t.Fatal(err)
	}
	c := &carried{engine: engine, layout: layout, spec: runtime.Spec{
		Run: "test-" + time.Now().Format("150405.000000000"), Unit: "carried", Owner: "test-" + filepath.Base(filepath.Dir(layout.Dir)),
		Durable: true, Image: image, Network: "none", ReadOnly: true, Limits: runtime.DefaultLimits(), Labels: testLabels,
	}}
	t.Cleanup(func() {
		ctx := context.Background()
		if err := runtime.RemoveAll(ctx, engine, c.spec.Run, c.spec.Owner); err != nil {
			t.Error(err)
		}
		if left := c.left(ctx, t); len(left) > 0 {
			t.Errorf("left are %q", left)
		}
	})
	return c
}

// left names what the engine has of the run: containers by their attempts, volumes by
// their names.
func (c *carried) left(ctx context.Context, t *testing.T) (names []string) {
	t.Helper()
	labels := map[string]string{runtime.LabelRun: c.spec.Run, runtime.LabelOwner: c.spec.Owner}
	containers, err := c.engine.ContainersByLabel(ctx, labels)
	volumes, volumesErr := c.engine.VolumesByLabel(ctx, labels)
	if err := errors.Join(err, volumesErr); err != nil {
		t.Fatal(err)
	}
	for _, ref := range containers {
		names = append(names, "container "+ref.Labels[runtime.LabelAttempt])
	}
	for _, ref := range volumes {
		names = append(names, "volume "+ref.Labels[runtime.LabelAttempt]+" "+ref.Name)
	}
	return names
}

func (c *carried) start(t *testing.T) (*runtime.Sandbox, runtime.Layout, *lines) {
	t.Helper()
	var seen lines
	layout := c.layout.At(c.engine, c.spec)
	s, err := runtime.Start(t.Context(), c.engine, c.spec, layout, seen.log())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Release)
	return s, layout, &seen
}

// end waits for the sandbox and removes it.
func end(t *testing.T, s *runtime.Sandbox) runtime.End {
	t.Helper()
	end, err := s.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	return end
}

const busyScript = `cat /io/input/file /io/input.json > /io/output/got
mkdir /io/output/d; echo deep > /io/output/d/f; chmod 0 /io/output/d; ln -s /etc/passwd /io/output/link; mkfifo /io/output/fifo
touch /io/input/x 2>/dev/null || echo input is closed
touch /io/handoff/incoming/x 2>/dev/null || echo incoming is closed
touch /run/aod/x 2>/dev/null || echo aod is closed
rm -f /run/aod/reach/report 2>/dev/null || echo the report stays
echo x > /workspace/x; echo x > /io/handoff/outgoing/x
echo '{"answer": 1}' > /io/output.json; exit 7`

func (c *carried) wantBusy(t *testing.T) {
	t.Helper()
	if err := c.layout.WriteInput([]byte(`{"n": 1}`)); err != nil {
		t.Fatal(err)
	}
	s, layout, seen := c.start(t)
	got := end(t, s)
	if got.ExitCode != 7 || !got.Reported || got.Report.ExitCode != 7 || got.Outside || got.Cause != nil {
		t.Errorf("%+v", got)
	}
	want := []string{"stdout: aod is closed", "stdout: incoming is closed", "stdout: input is closed", "stdout: the report stays"}
	if diff := cmp.Diff(want, seen.sorted()); diff != "" {
		t.Error(diff)
	}
	result, finding, err := layout.ReadResult(1 << 20)
	if string(result) != "{\"answer\": 1}\n" || finding != nil || err != nil {
		t.Errorf("%q, %+v, %v", result, finding, err)
	}
	listing, err := layout.Collect(c.spec.Limits)
	files := []runtime.Found{{Name: "d/f", SizeBytes: 5}, {Name: "got", SizeBytes: 14}}
	if diff := cmp.Diff(files, listing.Files); err != nil || diff != "" || len(listing.Skipped) != 2 {
		t.Errorf("%v, %q\n%s", err, listing.Skipped, diff)
	}
	raw, err := os.ReadFile(filepath.Join(layout.Dir, "io/output/got"))
	if err != nil || string(raw) != "given\n{\"n\": 1}" {
		t.Errorf("%q, %v", raw, err)
	}
	if left := c.left(t.Context(), t); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
}

func TestARunsFilesAreCarriedThereAndBack(t *testing.T) {
	t.Run("to volumes", func(t *testing.T) { newCarried(t, busyScript).wantBusy(t) })
	t.Run("where the image declares volumes in their place", func(t *testing.T) {
		c := newCarried(t, busyScript)
		t.Cleanup(func() { removeImages(t, c.engine) })
		id, err := c.engine.Build(t.Context(), runtime.BuildSpec{
			Labels:       testLabels,
			WriteContext: tarOf("Dockerfile", "FROM "+dockertest.Image+"\nRUN mkdir -p /io/output /io/handoff /data && touch /io/output/of-the-image /data/of-the-image\nVOLUME /io/output /io/handoff/ /data\n"),
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		image, err := c.engine.Image(t.Context(), id)
		if err != nil || len(image.Volumes) != 3 {
			t.Fatalf("%+v, %v", image, err)
		}
		image.Entrypoint, image.Cmd = c.spec.Image.Entrypoint, c.spec.Image.Cmd
		c.spec.Image = image
		c.wantBusy(t)
	})
	t.Run("and a run that leaves nothing has left nothing", func(t *testing.T) {
		c := newCarried(t, "rmdir /io/output")
		s, layout, _ := c.start(t)
		end(t, s)
		if _, finding, err := layout.ReadResult(1 << 20); finding == nil || err != nil {
			t.Errorf("%+v, %v", finding, err)
		}
		var limit *runtime.LimitError
		if listing, err := layout.Collect(c.spec.Limits); !errors.As(err, &limit) {
			t.Errorf("%+v, %v", listing, err)
		}
	})
	t.Run("and too much is still too much", func(t *testing.T) {
		c := newCarried(t, "head -c 300000 /dev/zero > /io/output.json; for i in 1 2 3 4; do head -c 100000 /dev/zero > /io/output/$i; done")
		c.spec.Limits.ResultBytes, c.spec.Limits.OutputBytes = 200000, 250000
		s, layout, _ := c.start(t)
		end(t, s)
		if _, finding, err := layout.ReadResult(c.spec.Limits.ResultBytes); finding == nil || err != nil {
			t.Errorf("%+v, %v", finding, err)
		}
		var limit *runtime.LimitError
		if listing, err := layout.Collect(c.spec.Limits); !errors.As(err, &limit) || limit.Limit != "output" {
			t.Errorf("%+v, %v", listing, err)
		}
	})
	t.Run("and what hides deep isn't a fault of ours", func(t *testing.T) {
		c := newCarried(t, "cd /io/output; i=0; while [ $i -lt 140 ]; do mkdir d; cd d; i=$((i+1)); done; echo x > f; ln f /io/output/z")
		s, layout, _ := c.start(t)
		end(t, s)
		var limit *runtime.LimitError
		if listing, err := layout.Collect(c.spec.Limits); !errors.As(err, &limit) {
			t.Errorf("%+v, %v", listing, err)
		}
	})
}

func TestTheCapsuleAPIReachesACarriedRun(t *testing.T) {
	c := newCarried(t, `perl -MIO::Socket::UNIX -e '
my $s; until ($s = IO::Socket::UNIX->new(Peer => "/run/aod/aod.sock")) { select(my $r, my $w, my $e, 0.05) }
print $s "GET /asked HTTP/1.0\r\n\r\n"; $s->flush; print while <$s>'; echo; echo ready; sleep 300`)
	s, layout, seen := c.start(t)
	listener, err := layout.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello to "+r.URL.Path) })}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	if !eventually(ctx, func() bool { return seen.has("stdout: ready") }) {
		t.Errorf("the log is %q", seen.sorted())
	}
	if !seen.has("stdout: hello to /asked") {
		t.Errorf("the log is %q", seen.sorted())
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	<-served
	if err := s.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestACarriedRunThatWritesTooMuchIsEnded(t *testing.T) {
	c := newCarried(t, "while :; do head -c 1000000 /dev/zero >> /workspace/x; sleep 0.1; done")
	c.spec.Limits.DiskBytes = 2 << 20
	s, _, _ := c.start(t)
	var limit *runtime.LimitError
	if got := end(t, s); !errors.As(got.Cause, &limit) || limit.Limit != "output" {
		// One file alone is bounded by the kernel as well, so the program goes on.
		t.Errorf("%+v", got)
	}
}

// unfilled is an engine whose client goes away before it fills the volumes.
type unfilled struct {
	*docker.Engine
	detach context.CancelCauseFunc
}

func (u unfilled) CopyTo(ctx context.Context, _, _ string, _ io.Reader) error {
	u.detach(runtime.ErrDetach)
	return ctx.Err()
}

func TestWhoAdoptsFillsWhatIsEmptyAndNothingElse(t *testing.T) {
	for name, c := range map[string]struct {
		dying func(*docker.Engine, context.CancelCauseFunc) runtime.Containers
		want  string
	}{
		"filled volumes stay as they are": {func(e *docker.Engine, detach context.CancelCauseFunc) runtime.Containers { return unstarted{e, detach} }, "first"},
		"empty volumes are filled":        {func(e *docker.Engine, detach context.CancelCauseFunc) runtime.Containers { return unfilled{e, detach} }, "second"},
	} {
		t.Run(name, func(t *testing.T) {
			run := newCarried(t, "echo $(cat /io/input.json)")
			if err := run.layout.WriteInput([]byte("first")); err != nil {
				t.Fatal(err)
			}
			ctx, detach := context.WithCancelCause(t.Context())
			engine := c.dying(run.engine, detach)
			if _, err := runtime.Start(ctx, engine, run.spec, run.layout.At(engine, run.spec), new(lines).log()); !errors.Is(err, runtime.ErrDetach) {
				t.Fatal(err)
			}
			refs, err := runtime.Find(t.Context(), run.engine, run.spec.Run, run.spec.Owner)
			if err != nil || len(refs) != 1 || refs[0].State != runtime.StatusCreated {
				t.Fatalf("%+v, %v", refs, err)
			}
			if err := run.layout.WriteInput([]byte("second")); err != nil {
				t.Fatal(err)
			}
			var seen lines
			s, err := runtime.Adopt(t.Context(), run.engine, refs[0].ID, run.spec, runtime.OpenLayout(run.layout.Dir, run.layout.Input).At(run.engine, run.spec), seen.log())
			if err != nil {
				t.Fatal(err)
			}
			if got := end(t, s); got.ExitCode != 0 || !seen.has("stdout: "+c.want) {
				t.Errorf("%+v; the log is %q", got, seen.sorted())
			}
		})
	}
}

func TestVolumesAreRemovedWithTheirRuns(t *testing.T) {
	run := newCarried(t, "sleep 300")
	ctx := t.Context()
	attempt := func(n int) {
		run.spec.Attempt = n
		s, _, _ := run.start(t)
		s.Release()
	}
	expect := func(t *testing.T, attempts ...string) {
		t.Helper()
		found := map[string]int{}
		for _, name := range run.left(ctx, t) {
			kind, rest, _ := strings.Cut(name, " ")
			found[kind+" "+strings.Fields(rest)[0]]++
		}
		want := map[string]int{}
		for _, a := range attempts {
			want["container "+a], want["volume "+a] = 1, 7
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Error(diff)
		}
	}
	attempt(1)
	attempt(2)
	expect(t, "1", "2")
	t.Run("but for those of another attempt", func(t *testing.T) {
		if err := runtime.RemoveOthers(ctx, run.engine, run.spec.Run, run.spec.Owner, 2); err != nil {
			t.Error(err)
		}
		expect(t, "2")
	})
	t.Run("but for those of another owner", func(t *testing.T) {
		for _, of := range [][2]string{{run.spec.Run, "another"}, {"another", run.spec.Owner}, {"", run.spec.Owner}, {run.spec.Run, ""}} {
			if err := runtime.RemoveAll(ctx, run.engine, of[0], of[1]); err != nil {
				t.Error(err)
			}
		}
		expect(t, "2")
	})
	t.Run("but for those of a run that lives", func(t *testing.T) {
		live := func(id string) bool { return id == run.spec.Run }
		if removed, err := runtime.RemoveStray(ctx, run.engine, run.spec.Owner, live); removed != 0 || err != nil {
			t.Errorf("%d, %v", removed, err)
		}
		expect(t, "2")
	})
	t.Run("of a run that doesn't live, all that there is", func(t *testing.T) {
		if removed, err := runtime.RemoveStray(ctx, run.engine, run.spec.Owner, func(string) bool { return false }); removed != 8 || err != nil {
			t.Errorf("%d, %v", removed, err)
		}
		expect(t)
	})
	t.Run("also when the context is over", func(t *testing.T) {
		attempt(3)
		over, cancel := context.WithCancel(ctx)
		cancel()
		if err := runtime.RemoveAll(over, run.engine, run.spec.Run, run.spec.Owner); err != nil {
			t.Error(err)
		}
		expect(t)
	})
}

func TestAFileTransferCarriesTheFilesOfHandoffs(t *testing.T) {
	run := newCarried(t, `cd /io/handoff/outgoing && mkdir -p d/e && echo one > d/e/f && echo two > g && echo half > /io/output/shown && ln -s /etc/passwd link && ln -s d up && mkfifo fifo
head -c 100000 /dev/zero > large; echo packed; while [ ! -e /io/handoff/incoming/a/b ]; do sleep 0.05; done; cat /io/handoff/incoming/a/b /io/handoff/incoming/c; stat -c '%a %u' /io/handoff/incoming/c; sleep 300`)
	s, layout, seen := run.start(t)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	if !eventually(ctx, func() bool { return seen.has("stdout: packed") }) {
		t.Fatalf("the log is %q", seen.sorted())
	}
	transfer := layout.FileTransfer()
	fetch := func(t *testing.T, maxBytes int64, names ...string) string {
		t.Helper()
		dir, done, err := transfer.Fetch(ctx, "/io/handoff/outgoing", names, maxBytes)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			done()
			if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("after done it is still there: %v", err)
			}
		})
		return dir
	}
	t.Run("out, each once, whatever the order of names", func(t *testing.T) {
		dir := fetch(t, 1<<20, "g", "d/e/f", "g", "d/e/f", "g/below/a/file", "d", "none", "d/none/f")
		for name, want := range map[string]string{"g": "two\n", "d/e/f": "one\n"} {
			if raw, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(raw) != want {
				t.Errorf("%s: %q, %v", name, raw, err)
			}
		}
		if found := below(t, dir); !slices.Equal(found, []string{"d", "d/e", "d/e/f", "g"}) {
			t.Errorf("%q", found)
		}
	})
	t.Run("out, where a link stays a link and none is followed", func(t *testing.T) {
		dir := fetch(t, 1<<20, "link", "up/e/f", "fifo")
		if found := below(t, dir); !slices.Equal(found, []string{"fifo", "link", "up"}) {
			t.Errorf("%q", found)
		}
		for _, name := range []string{"link", "up"} {
			if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode()&os.ModeSymlink == 0 {
				t.Errorf("%s: %+v, %v", name, info, err)
			}
		}
	})
	t.Run("out of the output", func(t *testing.T) {
		dir, done, err := transfer.Fetch(ctx, "/io/output", []string{"shown"}, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		defer done()
		if raw, err := os.ReadFile(filepath.Join(dir, "shown")); err != nil || string(raw) != "half\n" {
			t.Errorf("%q, %v", raw, err)
		}
	})
	t.Run("out, where too much is still too much", func(t *testing.T) {
		dir := fetch(t, 50000, "g", "large")
		if info, err := os.Lstat(filepath.Join(dir, "large")); err != nil || info.Size() != 100000 {
			t.Errorf("%+v, %v", info, err)
		}
	})
	t.Run("in", func(t *testing.T) {
		for name, text := range map[string]string{"a/b": "in deep", "c": "in"} {
			at := filepath.Join(layout.Incoming(), name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text+"\n"), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := transfer.Send(ctx, []string{"c", "a/b"}); err != nil {
				t.Error(err)
			}
		}
		if err := transfer.Send(ctx, []string{"none"}); err == nil {
			t.Error("a file that isn't there was sent")
		}
		if !eventually(ctx, func() bool { return seen.has("stdout: in deep") && seen.has("stdout: in") && seen.has("stdout: 644 0") }) {
			t.Errorf("the log is %q", seen.sorted())
		}
	})
	if err := s.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	t.Run("of a run that has gone, nothing, and makes nothing", func(t *testing.T) {
		if _, _, err := transfer.Fetch(t.Context(), "/io/handoff/outgoing", []string{"g"}, 1<<20); !fault.Is(err, fault.Unavailable) {
			t.Errorf("Fetch: %v", err)
		}
		if err := transfer.Send(t.Context(), []string{"c"}); !fault.Is(err, fault.Unavailable) && err != nil {
			t.Errorf("Send: %v", err)
		}
	})
}

// below lists what is below a directory of this host.
func below(t *testing.T, dir string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(at string, _ os.DirEntry, err error) error {
		if at != dir {
			rel, _ := filepath.Rel(dir, at)
			found = append(found, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
