package backup

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/internal/testing/trusted"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/store"
)

const (
	goesOn   = "01a2044e-1969-7341-b44f-88564b92b4a1"
	hasEnded = "01a2044e-1969-7341-b44f-88564b92b4a2"
	hasMade  = "01a2044e-1969-7341-b44f-88564b92b4a3" // goes on, and has its result
	isGone   = "01a2044e-1969-7341-b44f-88564b92b4a4" // its files are
)

// homeOfRuns makes a home of a server with the four runs.
func homeOfRuns(t *testing.T) string {
	t.Helper()
	home := filepath.Join(t.TempDir(), "server")
	if err := os.MkdirAll(filepath.Join(home, layout.Units), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(filepath.Join(home, layout.Database), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	for id, record := range map[string]string{goesOn: `{}`, hasEnded: `{}`, isGone: `not JSON`, hasMade: `{"outcome":"success"}`} {
		row := store.Run{ID: id, Unit: "worker", State: "running", Record: []byte(record), CreatedAt: now, Finished: id == hasEnded}
		if err := s.Runs.Insert(trusted.Context(t), row, store.Key{}); err != nil {
			t.Fatal(err)
		}
		if id == isGone {
			continue
		}
		for _, name := range []string{"input/a", "output/b", "state/c", "base/d", "base.json", "changes/e", "artifacts/f", "log.jsonl", "models.jsonl", "input.true.json", "1/io/input/g"} {
			put(t, name, home, layout.Runs, id, name)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return home
}

// namesIn are the names in a backup, in their order, with the runs' directory cut off.
func namesIn(t *testing.T, file string) (names []string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // read only
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
}

func TestWhatIsKeptOfARun(t *testing.T) {
	home, file := homeOfRuns(t), filepath.Join(t.TempDir(), "backup")
	report, err := Write(trusted.Context(t), home, Target{File: file, Replace: true}, "test")
	if err != nil || report.Runs != 4 {
		t.Fatalf("%+v, %v", report, err)
	}
	noted, err := time.Parse(time.RFC3339, strings.TrimSpace(string(bytesOf(t, filepath.Join(home, layout.BackedUp)))))
	if age := time.Since(noted); err != nil || age < 0 || age > testkit.Patience {
		t.Errorf("the home was backed up at %v, %v", noted, err)
	}
	names := namesIn(t, file)
	kept := []string{"artifacts/f", "base.json", "base/d", "input/a", "log.jsonl", "models.jsonl", "state/c"}
	for id, want := range map[string][]string{
		goesOn: kept, hasEnded: append(slices.Clone(kept), "changes/e", "output/b"), hasMade: append(slices.Clone(kept), "changes/e", "output/b"), isGone: nil,
	} {
		var got []string
		for _, name := range names {
			if below, ok := strings.CutPrefix(name, "runs/"+id+"/"); ok && !strings.HasSuffix(below, "/") {
				got = append(got, below)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", id, diff)
		}
	}
	if first, last := names[0], names[len(names)-2:]; first != headName || last[0] != layout.Database || last[1] != sumsName {
		t.Errorf("it begins with %s and ends with %s", first, last)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	_, done, err := restored(t, bytesOf(t, file))
	if err != nil || done.Report != report {
		t.Errorf("%+v instead of %+v, %v", done.Report, report, err)
	}
}

func bytesOf(t *testing.T, file string) []byte {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestWhatIsKeptOfUnits(t *testing.T) {
	home, file := homeOfRuns(t), filepath.Join(t.TempDir(), "backup")
	units := filepath.Join(home, layout.Units)
	put(t, "v1", units, "worker", "0123456789abcdef", "worker", "agent.yaml")
	put(t, "v2", units, "worker", "1123456789abcdef", "worker", "agent.yaml")
	put(t, "1123456789abcdef", units, "worker", "current")
	put(t, "half", units, "worker", "1123456789abcdef", safefs.TempPrefix+"x")
	put(t, "half", units, safefs.TempPrefix+"new", "0123456789abcdef", "new", "agent.yaml")
	put(t, "v1", units, "removed", "0123456789abcdef", "removed", "agent.yaml") // nothing is current
	put(t, "a note", units, "note")
	if err := os.Symlink("agent.yaml", filepath.Join(units, "worker", "0123456789abcdef", "worker", "link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(units, "worker", "0123456789abcdef", "worker", "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(trusted.Context(t), home, Target{File: file, Replace: true}, "test"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, name := range namesIn(t, file) {
		if below, ok := strings.CutPrefix(name, "units/"); ok && !strings.HasSuffix(below, "/") {
			got = append(got, below)
		}
	}
	want := []string{
		"removed/0123456789abcdef/removed/agent.yaml", "worker/0123456789abcdef/worker/agent.yaml", "worker/0123456789abcdef/worker/link",
		"worker/1123456789abcdef/worker/agent.yaml", "worker/current", // after the version that it names
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	after, _, err := restored(t, bytesOf(t, file))
	if target, linkErr := os.Readlink(filepath.Join(after, "units", "worker", "0123456789abcdef", "worker", "link")); err != nil || target != "agent.yaml" {
		t.Errorf("%q, %v, %v", target, err, linkErr)
	}
}

func TestNamesThatADigestLineHasToEscape(t *testing.T) {
	home, file := homeOfRuns(t), filepath.Join(t.TempDir(), "backup")
	odd := []string{"a\nb", `a\b`, "a\rb", "a  b", "é", strings.Repeat("x", 200)}
	for _, name := range odd {
		put(t, "of "+name, home, layout.Runs, goesOn, layout.Input, name)
	}
	if _, err := Write(trusted.Context(t), home, Target{File: file, Replace: true}, "test"); err != nil {
		t.Fatal(err)
	}
	after, _, err := restored(t, bytesOf(t, file))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range odd {
		if got := string(bytesOf(t, filepath.Join(after, layout.Runs, goesOn, layout.Input, name))); got != "of "+name {
			t.Errorf("%q: %q", name, got)
		}
	}
}

func TestABackupThatCantBeWritten(t *testing.T) {
	over, cancel := context.WithCancel(trusted.Context(t))
	cancel()
	dir := t.TempDir()
	for name, c := range map[string]struct {
		ctx  context.Context //nolint:containedctx // of one case
		home func() string
		file string
		want func(error) bool
	}{
		"of a home without a store": {trusted.Context(t), t.TempDir, filepath.Join(dir, "a"), func(err error) bool { return fault.Is(err, fault.NotFound) }},
		"where no directory is":     {trusted.Context(t), func() string { return homeOfRuns(t) }, filepath.Join(dir, "none", "a"), func(err error) bool { return fault.Is(err, fault.Input) }},
		"when it is cancelled":      {over, func() string { return homeOfRuns(t) }, filepath.Join(dir, "b"), func(err error) bool { return errors.Is(err, context.Canceled) }},
		"of a damaged store": {trusted.Context(t), func() string {
			home := t.TempDir()
			put(t, strings.Repeat("garbage", 1000), home, layout.Database)
			return home
		}, filepath.Join(dir, "c"), func(err error) bool { return fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Input) }},
		"over a directory": {trusted.Context(t), func() string { return homeOfRuns(t) }, dir, func(err error) bool { return fault.Is(err, fault.Unavailable) }},
	} {
		t.Run(name, func(t *testing.T) {
			if c.file != dir && !strings.Contains(c.file, "none") {
				put(t, "an earlier one", c.file)
			}
			_, err := Write(c.ctx, c.home(), Target{File: c.file, Replace: true}, "test")
			if !c.want(err) {
				t.Errorf("%s: %v", fault.KindOf(err), err)
			}
			if raw, err := os.ReadFile(c.file); err == nil && string(raw) != "an earlier one" {
				t.Errorf("the earlier one is %.40q", raw)
			}
			left, _ := filepath.Glob(filepath.Join(filepath.Dir(c.file), safefs.TempPrefix+"*"))
			if len(left) > 0 {
				t.Errorf("it has left %v", left)
			}
		})
	}
}

func TestABackupTakesNoNameThatIsTaken(t *testing.T) {
	home, file := homeOfRuns(t), filepath.Join(t.TempDir(), "backup")
	put(t, "an earlier one", file)
	_, err := Write(trusted.Context(t), home, Target{File: file}, "test")
	if !fault.Is(err, fault.Exists) || !strings.Contains(fault.Public(err).Hint, "--replace") {
		t.Errorf("%v", err)
	}
	if got := string(bytesOf(t, file)); got != "an earlier one" {
		t.Errorf("the earlier one is %.40q", got)
	}
	if left, _ := os.ReadDir(filepath.Dir(file)); len(left) != 1 {
		t.Errorf("there is %v", left)
	}
	if _, err := Write(trusted.Context(t), home, Target{File: file, Replace: true}, "test"); err != nil {
		t.Error(err)
	}
	if len(namesIn(t, file)) == 0 {
		t.Error("it isn't a backup")
	}
}

func TestOneProcessPreparesAFile(t *testing.T) {
	home, file := homeOfRuns(t), filepath.Join(t.TempDir(), "backup")
	w, err := openWorkplace(file)
	if err != nil {
		t.Fatal(err)
	}
	put(t, "half", w.dir, "home", "of a dead process")
	if _, err := Write(trusted.Context(t), home, Target{File: file, Replace: true}, "test"); !fault.Is(err, fault.Conflict) || !strings.Contains(fault.Public(err).Hint, "another name") {
		t.Errorf("%v", err)
	}
	if err := w.lock.Close(); err != nil { // as when it dies
		t.Fatal(err)
	}
	if _, err := Write(trusted.Context(t), home, Target{File: file, Replace: true}, "test"); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(filepath.Dir(file)); len(left) != 1 {
		t.Errorf("there is %v", left)
	}
}
