package runtime

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestASpecBecomesAContainer(t *testing.T) {
	l := Layout{Dir: "/data/runs/r1"}
	spec := Spec{
		Run: "r1", Root: "r0", Unit: "hello", Owner: "me",
		Image: Image{
			ID: "sha256:1", Tags: []string{"aod-capsule/hello:1"}, Entrypoint: []string{"python3"}, Cmd: []string{"run.py", "-v"},
			Env: []string{"PATH=/bin"}, WorkingDir: "/app", Volumes: []string{"/cache/", "/tmp", "/workspace"},
		},
		Network: "bridge", ReadOnly: true, Isolation: "runsc",
		Limits: Limits{
			Timeout: time.Second, MemoryBytes: 1, CPUs: 1.5, PIDs: 2, OpenFiles: 3, TmpBytes: 4, DiskBytes: 5,
			OutputBytes: 6, OutputFiles: 7, LogBytes: 8, ResultBytes: 9,
		},
		Env: []string{"A=0", "B=2", "A=1"}, Labels: map[string]string{"team": "red", LabelRun: "forged", LabelRoot: "x", LabelUnit: "", LabelOwner: "x", LabelAttempt: "x", LabelPurpose: "x"},
	}
	want := ContainerSpec{
		Name: "aod-r1", Image: "sha256:1", Entrypoint: []string{"/run/aod/init", "--"}, Cmd: []string{"python3", "run.py", "-v"},
		Env: []string{"HOME=/workspace", "A=1", "B=2"}, WorkingDir: "/app", User: sandboxUser(0), Hostname: "sandbox",
		Labels: map[string]string{"team": "red", LabelRun: "r1", LabelRoot: "r0", LabelUnit: "hello", LabelOwner: "me", LabelAttempt: "1", LabelPurpose: ""},
		Mounts: []Mount{
			{Source: "/data/runs/r1/io", Target: "/io"},
			{Source: "/data/runs/r1/io/input", Target: "/io/input", ReadOnly: true},
			{Source: "/data/runs/r1/incoming", Target: "/io/handoff/incoming", ReadOnly: true},
			{Source: "/data/runs/r1/outgoing", Target: "/io/handoff/outgoing"},
			{Source: "/data/runs/r1/workspace", Target: "/workspace"},
			{Source: "/data/runs/r1/aod", Target: "/run/aod", ReadOnly: true},
			{Source: "/data/runs/r1/aod/report", Target: "/run/aod/report"},
		},
		Tmpfs: map[string]string{
			"/tmp":   "rw,nosuid,nodev,size=4,mode=1777",
			"/cache": "rw,nosuid,nodev,size=4,mode=1777",
		},
		ReadOnly: true, Network: "bridge", Runtime: "runsc",
		Limits: ContainerLimits{MemoryBytes: 1, CPUs: 1.5, PIDs: 2 + initThreads, OpenFiles: 3, FileBytes: 5, ShmBytes: 4},
	}
	if diff := cmp.Diff(want, spec.container(l)); diff != "" {
		t.Error(diff)
	}
	if first := spec.container(l); spec.Env[0] != "A=0" || len(first.Env) != len(spec.container(l).Env) {
		t.Error("the spec was changed")
	}
}

func TestEachAttemptHasANameAndALabel(t *testing.T) {
	for attempt, want := range map[int]struct{ name, label string }{
		0: {"aod-r1", "1"}, 1: {"aod-r1", "1"}, 2: {"aod-r1-2", "2"}, 12: {"aod-r1-12", "12"},
	} {
		got := Spec{Run: "r1", Attempt: attempt}.container(Layout{})
		if got.Name != want.name || got.Labels[LabelAttempt] != want.label {
			t.Errorf("attempt %d: name %s, label %s", attempt, got.Name, got.Labels[LabelAttempt])
		}
	}
}

func TestTheEngineKeepsTheLogOfADurableSandbox(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		want int64
	}{
		{Spec{Limits: Limits{LogBytes: 5}}, 0},
		{Spec{Durable: true, Limits: Limits{LogBytes: 5}}, 5},
		{Spec{Durable: true}, 1}, // Logs must find a log
	} {
		if got := c.spec.container(Layout{}).LogBytes; got != c.want {
			t.Errorf("%+v: %d bytes", c.spec, got)
		}
	}
}

func TestASandboxIsNeverRoot(t *testing.T) {
	uid, gid, ok := strings.Cut(sandboxUser(0), ":")
	if !ok || uid == "0" || gid == "" {
		t.Errorf("user %q", sandboxUser(0))
	}
	if os.Geteuid() == 0 && sandboxUser(0) != strconv.Itoa(unprivileged)+":"+strconv.Itoa(unprivileged) {
		t.Errorf("user %q where we are root", sandboxUser(0))
	}
}

func TestOnlyASandboxWithoutANetworkGetsAHostsFile(t *testing.T) {
	l := newLayout(t)
	for network, want := range map[string]bool{"none": true, "bridge": false} {
		mounts := binds{l, Spec{Network: network}}.all(nil)
		i := slices.IndexFunc(mounts, func(m Mount) bool { return m.Target == "/etc/hosts" })
		if (i >= 0) != want {
			t.Errorf("network %q: mounts %v", network, mounts)
		}
		if want && (!mounts[i].ReadOnly || !strings.Contains(read(t, mounts[i].Source), "127.0.0.1 localhost")) {
			t.Errorf("mount %+v", mounts[i])
		}
	}
}

func TestEveryMountIsThereAndComesAfterWhatItLiesOver(t *testing.T) {
	l := newLayout(t)
	volumes := []string{"/io", "/io/output/", "/io/handoff", "/io/handoff/outgoing", "/io/input", "/io/cache"}
	spec := Spec{Network: "none", Image: Image{Volumes: volumes}}.container(l)
	var targets []string
	for i, m := range spec.Mounts {
		targets = append(targets, m.Target)
		if _, err := os.Stat(m.Source); err != nil {
			t.Error(err)
		}
		for _, later := range spec.Mounts[i+1:] {
			if strings.HasPrefix(m.Target, later.Target+"/") {
				t.Errorf("%s is hidden by %s", m.Target, later.Target)
			}
		}
	}
	for _, volume := range volumes {
		target := filepath.Clean(volume)
		_, tmpfs := spec.Tmpfs[target]
		if bound := slices.Contains(targets, target); bound == tmpfs || bound != (target != "/io/cache") {
			t.Errorf("%s is bound: %t, a tmpfs: %t", target, bound, tmpfs)
		}
	}
}

func TestOrTakesWhatIsNotSaidFromTheFallback(t *testing.T) {
	defaults := DefaultLimits()
	if diff := cmp.Diff(defaults, Limits{}.Or(defaults)); diff != "" {
		t.Errorf("nothing said: %s", diff)
	}
	said := reflect.New(reflect.TypeFor[Limits]()).Elem()
	for i := range said.NumField() {
		field := said.Field(i)
		if field.CanInt() {
			field.SetInt(int64(i + 1))
			continue
		}
		field.SetFloat(float64(i + 1))
	}
	all := said.Interface().(Limits)
	if diff := cmp.Diff(all, all.Or(defaults)); diff != "" {
		t.Errorf("all said: %s", diff)
	}
	if diff := cmp.Diff(all, Limits{}.Or(all)); diff != "" {
		t.Errorf("all in the fallback: %s", diff)
	}
}

func TestAtMostBoundsEachLimit(t *testing.T) {
	bounds := reflect.New(reflect.TypeFor[Limits]()).Elem()
	for i := range bounds.NumField() {
		if field := bounds.Field(i); field.CanInt() {
			field.SetInt(2)
		} else {
			field.SetFloat(2)
		}
	}
	most := bounds.Interface().(Limits)
	most.CPUs = 0.5 // by default it is 1
	if diff := cmp.Diff(most, DefaultLimits().AtMost(most)); diff != "" {
		t.Errorf("all are larger: %s", diff)
	}
	if diff := cmp.Diff(DefaultLimits(), DefaultLimits().AtMost(Limits{})); diff != "" {
		t.Errorf("there is no bound: %s", diff)
	}
	if diff := cmp.Diff(most, most.AtMost(DefaultLimits())); diff != "" {
		t.Errorf("all are smaller: %s", diff)
	}
}

func TestARunMayWriteTwiceItsOutputToTheDisk(t *testing.T) {
	cases := []struct {
		name       string
		said, want Limits
	}{
		{"a small output leaves the default", Limits{OutputBytes: 1}, Limits{DiskBytes: 100}},
		{"a large one needs more", Limits{OutputBytes: 80}, Limits{DiskBytes: 160}},
		{"what is said is in force", Limits{OutputBytes: 80, DiskBytes: 90}, Limits{DiskBytes: 90}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := c.said.Or(Limits{DiskBytes: 100}).DiskBytes; got != c.want.DiskBytes {
				t.Errorf("%d, want %d", got, c.want.DiskBytes)
			}
		})
	}
}
