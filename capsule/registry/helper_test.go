package registry

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
)

func TestMain(m *testing.M) { testkit.NoLeaks(m) }

const anySchema = `{"input": {"type": "object"}, "output": {"type": "object"}}`

// good is the smallest capsule that breaks no rule. It is named after its directory.
var good = map[string]string{
	"Dockerfile":  "FROM scratch\nCMD [\"/run\"]\n",
	"agent.yaml":  "",
	"schema.json": anySchema,
}

// changed is the good capsule with some files changed, "-" for none.
func changed(changes map[string]string) map[string]string {
	files := maps.Clone(good)
	maps.Copy(files, changes)
	maps.DeleteFunc(files, func(_, text string) bool { return text == "-" })
	return files
}

func write(t testing.TB, dir string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// harness is a registry over one source and its home.
type harness struct {
	*Registry
	t      testing.TB
	source string
	home   string
	reads  *atomic.Int64 // of directories
}

func newFixture(t testing.TB) harness {
	root := t.TempDir()
	f := harness{t: t, source: filepath.Join(root, "source"), home: filepath.Join(root, "home")}
	must(t, os.Mkdir(f.source, 0o755))
	return f.restart()
}

// restart is what a new process sees.
func (f harness) restart(more ...string) harness {
	f.t.Helper()
	f.reads = new(atomic.Int64)
	r, err := New(Options{
		Home: f.home, Sources: append([]string{f.source}, more...),
		MaxBytes: 1 << 20, MaxEntries: 100, Logger: slog.New(readCounter{f.reads}),
	})
	must(f.t, err)
	f.Registry = r
	return f
}

// add writes a capsule into the source.
func (f harness) add(name string, changes map[string]string) string {
	f.t.Helper()
	return write(f.t, filepath.Join(f.source, name), changed(changes))
}

func (f harness) get(name string) *unit.Unit {
	f.t.Helper()
	u, err := f.Get(f.t.Context(), name)
	if err != nil {
		f.t.Fatalf("Get %s: %v\n%s", name, err, told(err))
	}
	return u
}

func (f harness) put(name string, archive []byte) (*unit.Unit, bool) {
	f.t.Helper()
	u, created, err := f.Put(f.t.Context(), name, bytes.NewReader(archive), Upload{})
	if err != nil {
		f.t.Fatalf("Put %s: %v\n%s", name, err, told(err))
	}
	return u, created
}

// lines writes a list as "name [version] [problem]".
func (f harness) lines() []string {
	f.t.Helper()
	list, err := f.List(f.t.Context())
	must(f.t, err)
	lines := make([]string, 0, len(list))
	for _, l := range list {
		line := l.Name
		if l.Unit != nil {
			line += " served from " + l.Unit.Source
		}
		if l.Problem != nil {
			line += ": " + l.Problem.Kind.String()
		}
		lines = append(lines, line)
	}
	return lines
}

// leftovers are names in the home that a finished call may not leave.
func (f harness) leftovers() []string {
	found, err := filepath.Glob(filepath.Join(f.home, safefs.TempPrefix+"*"))
	must(f.t, err)
	deeper, err := filepath.Glob(filepath.Join(f.home, "*", safefs.TempPrefix+"*"))
	must(f.t, err)
	return slices.Concat(found, deeper)
}

// readCounter is a log that counts how often directories were read.
type readCounter struct{ n *atomic.Int64 }

func (readCounter) Enabled(context.Context, slog.Level) bool { return true }
func (c readCounter) WithAttrs([]slog.Attr) slog.Handler     { return c }
func (c readCounter) WithGroup(string) slog.Handler          { return c }
func (c readCounter) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "unit read" {
		c.n.Add(1)
	}
	return nil
}

// told writes the findings of an error, one a line.
func told(err error) string {
	var f *fault.Error
	if !errors.As(err, &f) {
		return ""
	}
	var b strings.Builder
	for _, finding := range f.Findings {
		b.WriteString(finding.String() + "\n")
	}
	return b.String()
}

// tarOf makes a tar of headers; a regular file's content is its Linkname.
func tarOf(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		var body string
		if h.Typeflag == tar.TypeReg {
			body, h.Linkname = h.Linkname, ""
			h.Size = int64(len(body))
		}
		if h.Mode == 0 && h.Typeflag != tar.TypeXGlobalHeader {
			h.Mode = 0o644
		}
		must(t, w.WriteHeader(&h))
		_, err := w.Write([]byte(body))
		must(t, err)
	}
	must(t, w.Close())
	return b.Bytes()
}

// capsuleTar makes a tar of the good capsule with changes below a prefix, and more.
func capsuleTar(t testing.TB, prefix string, changes map[string]string, more ...tar.Header) []byte {
	t.Helper()
	var headers []tar.Header
	files := changed(changes)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		headers = append(headers, tar.Header{Typeflag: tar.TypeReg, Name: prefix + name, Linkname: files[name]})
	}
	return tarOf(t, append(headers, more...)...)
}

func gzipped(t testing.TB, raw []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(raw)
	must(t, err)
	must(t, w.Close())
	return b.Bytes()
}
