package enginetest

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime"
)

// carrier is a suite whose engine is a runtime.RemoteEngine.
type carrier struct {
	suite
	engine runtime.RemoteEngine
}

// carrying skips the part where the engine can only be one that sees this host's files.
func carrying(t *testing.T, s suite) carrier {
	t.Helper()
	engine, ok := s.Engine.(runtime.RemoteEngine)
	if !ok {
		t.Skip("the engine carries no files: it sees this host's")
	}
	return carrier{s, engine}
}

// volume names a volume that is gone at the end of the test, after its containers.
func (c carrier) volume(t *testing.T) string {
	t.Helper()
	name := "aod-test-" + strings.ToLower(rand.Text())
	t.Cleanup(func() {
		if err := c.engine.RemoveVolume(c.context(t), name); err != nil {
			t.Error(err)
		}
	})
	return name
}

// with is a spec with volumes.
func (c carrier) with(script string, volumes ...runtime.VolumeMount) runtime.ContainerSpec {
	spec := c.spec(script)
	spec.Volumes, spec.ReadOnly = volumes, false // so that files can be put beside the volumes, too
	return spec
}

func testCarried(t *testing.T, s suite) {
	c := carrying(t, s)
	t.Run("volumes", c.testVolumes)
	t.Run("into a container", c.testCopyTo)
	t.Run("out of a container", c.testCopyFrom)
}

func (c carrier) testVolumes(t *testing.T) {
	ctx := c.context(t)
	t.Run("a container's volumes have its labels and are found by them", func(t *testing.T) {
		spec := c.with(scriptSmall, runtime.VolumeMount{Volume: c.volume(t), Target: "/data"})
		spec.Labels = map[string]string{Label: c.labels[Label], "aod.test.color": "red"}
		c.create(t, spec)
		for _, f := range []struct {
			labels map[string]string
			want   int
		}{
			{map[string]string{Label: c.labels[Label], "aod.test.color": "red"}, 1},
			{map[string]string{Label: c.labels[Label], "aod.test.color": ""}, 1},
			{map[string]string{Label: c.labels[Label], "aod.test.color": "blue"}, 0},
			{map[string]string{Label: c.labels[Label], "aod.test.shape": ""}, 0},
		} {
			refs, err := c.engine.VolumesByLabel(ctx, f.labels)
			if err != nil || len(refs) != f.want {
				t.Fatalf("%v: found %+v, want %d (error %v)", f.labels, refs, f.want, err)
			}
			for _, ref := range refs {
				if ref.Name != spec.Volumes[0].Volume || ref.Labels["aod.test.color"] != "red" {
					t.Errorf("found %+v", ref)
				}
			}
		}
	})
	t.Run("one in use can't be removed, and one that has gone can be removed again", func(t *testing.T) {
		name := c.volume(t)
		id := c.create(t, c.with(scriptSmall, runtime.VolumeMount{Volume: name, Target: "/data"}))
		wantKind(t, c.engine.RemoveVolume(ctx, name), fault.Conflict)
		if err := c.Engine.Remove(ctx, id); err != nil {
			t.Fatal(err)
		}
		if refs, err := c.volumes(ctx); err != nil || len(refs) != 1 {
			t.Errorf("with its container went the volume: %+v, %v", refs, err)
		}
		for range 2 {
			if err := c.engine.RemoveVolume(ctx, name); err != nil {
				t.Error(err)
			}
		}
		if refs, err := c.volumes(ctx); err != nil || len(refs) != 0 {
			t.Errorf("left are %+v, %v", refs, err)
		}
	})
	t.Run("what the image has at their place isn't copied into them", func(t *testing.T) {
		r := c.start(t, c.with("ls -A /etc", runtime.VolumeMount{Volume: c.volume(t), Target: "/etc"}))
		for _, name := range strings.Fields(r.stdout.all(t)) { // the engine's own are mounted there
			if name != "hosts" && name != "hostname" && name != "resolv.conf" && name != "mtab" {
				t.Errorf("there is %q", name)
			}
		}
		r.wait(t)
	})
	t.Run("one that is mounted read-only can't be written, and the same one elsewhere can", func(t *testing.T) {
		name := c.volume(t)
		id := c.create(t, c.with(scriptSmall, runtime.VolumeMount{Volume: name, Target: "/data"}))
		c.copyTo(t, id, "/data", entry{Header: tar.Header{Typeflag: tar.TypeDir, Name: "d/", Mode: 0o777}})
		r := c.start(t, c.with(
			"touch /ro/d/x 2>/dev/null || echo refused; touch /rw/d/x && ls /ro/d",
			runtime.VolumeMount{Volume: name, Target: "/ro", ReadOnly: true}, runtime.VolumeMount{Volume: name, Target: "/rw"},
		))
		if out := r.stdout.all(t); out != "refused\nx\n" {
			t.Errorf("%q, stderr %q", out, r.stderr.all(t))
		}
		r.wait(t)
	})
	t.Run("one lies over another", func(t *testing.T) {
		outer, inner := c.volume(t), c.volume(t)
		id := c.create(t, c.with(
			scriptSmall,
			runtime.VolumeMount{Volume: outer, Target: "/files/outer"}, runtime.VolumeMount{Volume: inner, Target: "/files/inner"},
		))
		c.copyTo(t, id, "/files", file("outer/inner/hidden", "x", 0o644), file("outer/seen", "x", 0o644), file("inner/over", "x", 0o644))
		r := c.start(t, c.with(
			"ls /data /data/inner",
			runtime.VolumeMount{Volume: outer, Target: "/data", ReadOnly: true}, runtime.VolumeMount{Volume: inner, Target: "/data/inner"},
		))
		if out := r.stdout.all(t); out != "/data:\ninner\nseen\n\n/data/inner:\nover\n" {
			t.Errorf("%q, stderr %q", out, r.stderr.all(t))
		}
		r.wait(t)
	})
}

// entry is one of a tar.
type entry struct {
	tar.Header
	content string
}

func file(name, content string, mode int64) entry {
	return entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode}, content}
}

func packed(t *testing.T, entries ...entry) *bytes.Buffer {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, e := range entries {
		e.Size = int64(len(e.content))
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &buf
}

func (c carrier) copyTo(t *testing.T, id, dir string, entries ...entry) {
	t.Helper()
	if err := c.engine.CopyTo(c.context(t), id, dir, packed(t, entries...)); err != nil {
		t.Fatal(err)
	}
}

func (c carrier) testCopyTo(t *testing.T) {
	ctx := c.context(t)
	t.Run("files reach a volume through a container that never starts, with owners and modes", func(t *testing.T) {
		name := c.volume(t)
		id := c.create(t, c.with(scriptSmall, runtime.VolumeMount{Volume: name, Target: "/files/data"}))
		theirs := file("data/d/theirs", "1", 0o600)
		theirs.Uid, theirs.Gid = 65534, 65534
		c.copyTo(
			t, id, "/files",
			entry{Header: tar.Header{Typeflag: tar.TypeDir, Name: "data/d/", Mode: 0o1777}},
			theirs, file("data/d/ours", "two", 0o444),
			entry{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: "data/d/link", Linkname: "/nowhere", Mode: 0o777}},
		)
		r := c.start(t, c.with("cd /data && stat -c '%n %a %u:%g %s %F' d d/* && readlink d/link", runtime.VolumeMount{Volume: name, Target: "/data", ReadOnly: true}))
		const want = "d 1777 0:0 4096 directory\n" +
			"d/link 777 0:0 8 symbolic link\n" +
			"d/ours 444 0:0 3 regular file\n" +
			"d/theirs 600 65534:65534 1 regular file\n/nowhere\n"
		if out := r.stdout.all(t); out != want {
			t.Errorf("%q, want %q, stderr %q", out, want, r.stderr.all(t))
		}
		r.wait(t)
		if state, err := c.Engine.Inspect(ctx, id); err != nil || state.Status != runtime.StatusCreated {
			t.Errorf("%+v, %v", state, err)
		}
	})
	t.Run("into what isn't there nothing is put", func(t *testing.T) {
		id := c.create(t, c.with(scriptSmall, runtime.VolumeMount{Volume: c.volume(t), Target: "/data"}))
		wantKind(t, c.engine.CopyTo(ctx, id, "/data/none", packed(t, file("f", "x", 0o644))), fault.NotFound)
		wantKind(t, c.engine.CopyTo(ctx, strings.Repeat("0", 64), "/data", packed(t, file("f", "x", 0o644))), fault.NotFound)
	})
	t.Run("a source that breaks is an error", func(t *testing.T) {
		id := c.create(t, c.with(scriptSmall, runtime.VolumeMount{Volume: c.volume(t), Target: "/data"}))
		begun := packed(t, file("f", strings.Repeat("x", 4096), 0o644)).Bytes()[:2000]
		r, w := io.Pipe()
		go func() {
			_, _ = w.Write(begun)
			w.CloseWithError(errors.New("nothing more"))
		}()
		if err := c.engine.CopyTo(ctx, id, "/data", r); err == nil {
			t.Error("no error")
		}
		_ = r.Close()
	})
	t.Run("a call ends with its context and its source", func(t *testing.T) {
		id := c.create(t, c.with(scriptSmall, runtime.VolumeMount{Volume: c.volume(t), Target: "/data"}))
		short, cancel := context.WithCancel(ctx)
		r, w := io.Pipe()
		defer context.AfterFunc(short, func() { _ = r.Close() })()
		done := make(chan error, 1)
		go func() { done <- c.engine.CopyTo(short, id, "/data", r) }()
		if _, err := w.Write(packed(t, file("f", "x", 0o644)).Bytes()[:512]); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := receive(t, done); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		_ = w.Close()
	})
}

// unpacked reads what CopyFrom returns: names with what they are.
func (c carrier) unpacked(t *testing.T, id, path string) (found []string) {
	t.Helper()
	stream, err := c.engine.CopyFrom(c.context(t), id, path)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	for r := tar.NewReader(stream); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, fmt.Sprintf("%s %c %s%s", header.Name, header.Typeflag, content, header.Linkname))
	}
}

func (c carrier) testCopyFrom(t *testing.T) {
	ctx := c.context(t)
	id := c.create(t, c.with(scriptSmall, runtime.VolumeMount{Volume: c.volume(t), Target: "/data"}))
	c.copyTo(
		t, id, "/data",
		entry{Header: tar.Header{Typeflag: tar.TypeDir, Name: "d/", Mode: 0o755}}, file("d/f", "binary\x00\xff", 0o640),
		entry{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: "link", Linkname: "/etc", Mode: 0o777}},
		entry{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: "broken", Linkname: "/nowhere", Mode: 0o777}},
		entry{Header: tar.Header{Typeflag: tar.TypeFifo, Name: "fifo", Mode: 0o600}},
	)
	for _, p := range []struct {
		path string
		want string
		mode fs.FileMode
		size int64
	}{
		{"/data/d/f", "f 0 binary\x00\xff", 0o640, 8},
		{"/data/d", "d/ 5 |d/f 0 binary\x00\xff", fs.ModeDir | 0o755, -1},
		{"/data/link", "link 2 /etc", fs.ModeSymlink | 0o777, -1},
		{"/data/broken", "broken 2 /nowhere", fs.ModeSymlink | 0o777, -1},
		{"/data/fifo", "fifo 6 ", fs.ModeNamedPipe | 0o600, -1},
	} {
		t.Run(p.path, func(t *testing.T) {
			if got := strings.Join(c.unpacked(t, id, p.path), "|"); got != p.want {
				t.Errorf("%q, want %q", got, p.want)
			}
			stat, err := c.engine.StatIn(ctx, id, p.path)
			if err != nil || stat.Mode != p.mode || p.size >= 0 && stat.SizeBytes != p.size {
				t.Errorf("%v, %+v, want %v", err, stat, p.mode)
			}
		})
	}
	for _, p := range []struct{ name, id, path string }{
		{"a missing path", id, "/data/none"},
		{"a path below a missing one", id, "/data/none/f"},
		{"a path of a missing container", strings.Repeat("0", 64), "/data"},
	} {
		t.Run(p.name, func(t *testing.T) {
			_, err := c.engine.CopyFrom(ctx, p.id, p.path)
			wantKind(t, err, fault.NotFound)
			_, err = c.engine.StatIn(ctx, p.id, p.path)
			wantKind(t, err, fault.NotFound)
		})
	}
}
