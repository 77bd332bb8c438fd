package docker

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

// recordedSelf reads what a process saw of itself, and the ids that it should find.
func recordedSelf(t testing.TB, path string) (proc fstest.MapFS, hostname string, want []string) {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	proc = fstest.MapFS{}
	for _, f := range archive.Files {
		switch f.Name {
		case "hostname":
			hostname = strings.TrimSpace(string(f.Data))
		case "want":
			want = strings.Fields(string(f.Data))
		default:
			proc[f.Name] = &fstest.MapFile{Data: f.Data}
		}
	}
	return proc, hostname, want
}

func TestAProcessFindsTheContainerThatItRunsIn(t *testing.T) {
	records, err := filepath.Glob("testdata/self/*.txtar")
	if err != nil || len(records) == 0 {
		t.Fatal(err, "no records")
	}
	for _, path := range records {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			proc, hostname, want := recordedSelf(t, path)
			if diff := cmp.Diff(want, selfOf(proc, hostname).ids, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAProcessFindsWhatIsMountedInItsContainer(t *testing.T) {
	proc := fstest.MapFS{"mountinfo": {Data: []byte(
		`87 69 254:0 /a /my\040data\134x rw,relatime master:1 shared:2 - ext4 /dev/vda rw` + "\n" +
			`88 87 254:0 /b /data/b rw,relatime - ext4 /dev/vda rw` + "\n")}}
	if diff := cmp.Diff([]string{`/my data\x`, "/data/b"}, selfOf(proc, "").points); diff != "" {
		t.Error(diff)
	}
}

func TestAFileOfTheKernelsWithoutAnEndIsReadInPart(t *testing.T) {
	line := "88 87 254:0 /b /data/b rw,relatime - ext4 /dev/vda rw\n"
	for what, text := range map[string]string{
		"many lines":     strings.Repeat(line, 2*selfLimit/len(line)),
		"one long line":  line + strings.Repeat("x", 2*selfLimit),
		"no end of line": line + "88 87 254:0 /b /data/b rw,relatime - ext4 /dev/vda rw",
	} {
		t.Run(what, func(t *testing.T) {
			points := selfOf(fstest.MapFS{"mountinfo": {Data: []byte(text)}}, "").points
			if len(points) == 0 || len(points) > selfLimit/len(line)+1 {
				t.Errorf("%d lines were read", len(points))
			}
		})
	}
}

func FuzzSelf(f *testing.F) {
	records, err := filepath.Glob("testdata/self/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range records {
		proc, hostname, _ := recordedSelf(f, path)
		var mountinfo, cgroup []byte
		if file := proc["mountinfo"]; file != nil {
			mountinfo = file.Data
		}
		if file := proc["cgroup"]; file != nil {
			cgroup = file.Data
		}
		f.Add(mountinfo, cgroup, hostname)
	}
	id := regexp.MustCompile(`^[0-9a-f]{12}([0-9a-f]{52})?$`)
	fuzzbound.Run(f, func(t *testing.T, mountinfo, cgroup []byte, hostname string) {
		found := selfOf(fstest.MapFS{"mountinfo": {Data: mountinfo}, "cgroup": {Data: cgroup}}, hostname)
		seen := map[string]bool{}
		for _, candidate := range found.ids {
			if !id.MatchString(candidate) || seen[candidate] {
				t.Errorf("%q isn't an id, or one twice", candidate)
			}
			seen[candidate] = true
		}
		for _, point := range found.points {
			if !strings.HasPrefix(point, "/") {
				t.Errorf("%q is no mount point", point)
			}
		}
	})
}
