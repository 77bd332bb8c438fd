package docker

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime"
)

const (
	ownID       = "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9"
	neighbourID = "f9e8d7c6b5a4938271605f4e3d2c1b0af9e8d7c6b5a4938271605f4e3d2c1b0a"
)

// ownContainer is what the engine tells of the container that the tests pretend to be in.
const ownContainer = `{
  "Id": "` + ownID + `",
  "HostConfig": {
    "Tmpfs": {"/data/memory": ""},
    "Mounts": [
      {"Type": "volume", "Source": "shared", "Target": "/part", "VolumeOptions": {"Subpath": "of/it"}},
      {"Type": "bind", "Source": "/srv/units", "Target": "/data/units"}
    ]
  },
  "Mounts": [
    {"Type": "bind", "Source": "/srv/units", "Destination": "/data/units/"},
    {"Type": "volume", "Name": "aod-data", "Source": "/var/lib/docker/volumes/aod-data/_data", "Destination": "/data"},
    {"Type": "volume", "Name": "shared", "Source": "/var/lib/docker/volumes/shared/_data", "Destination": "/part"},
    {"Type": "tmpfs", "Source": "", "Destination": "/data/fast"},
    {"Type": "tmpfs", "Source": "tmpfs", "Destination": "/data/podman"},
    {"Type": "volume", "Name": "far", "Source": "", "Driver": "far", "Destination": "/far"}
  ]
}`

var ownPoints = []string{"/", "/data", "/part", "/data/units", "/data/fast", "/data/podman", "/data/memory", "/far", "/more", "/proc"}

// contained returns an engine with an API that tells of containers, as a process with
// that self sees it.
func contained(t *testing.T, me self, containers map[string]string) (*Engine, *fakeAPI) {
	t.Helper()
	api := &fakeAPI{version: "1.41", answers: map[string]http.HandlerFunc{}}
	for _, id := range me.ids {
		api.answers["GET /containers/"+id+"/json"] = answer(http.StatusNotFound, `{"message":"No such container"}`)
	}
	for id, body := range containers {
		api.answers["GET /containers/"+id+"/json"] = answer(http.StatusOK, body)
	}
	engine := connect(t, api)
	engine.self = func() self { return me }
	return engine, api
}

// inspections counts how often the engine was asked for a container.
func inspections(api *fakeAPI) (n int) {
	for _, request := range api.requests() {
		if strings.HasPrefix(request, "GET /v1.41/containers/") {
			n++
		}
	}
	return n
}

func hostOf(t *testing.T, engine *Engine, source string) (string, error) {
	t.Helper()
	mounts, err := engine.hostMounts(t.Context(), []runtime.Mount{{Source: source, Target: "/io"}})
	if err != nil {
		return "", err
	}
	return mounts[0].Source, nil
}

func TestTheEngineIsToldWhereItsHostHasTheFilesOfOurContainer(t *testing.T) {
	engine, api := contained(t, self{ids: []string{ownID}, points: ownPoints}, map[string]string{ownID: ownContainer})
	for _, c := range []struct{ what, source, want string }{
		{"a volume itself", "/data", "/var/lib/docker/volumes/aod-data/_data"},
		{"below a volume", "/data/server/runs/1/io", "/var/lib/docker/volumes/aod-data/_data/server/runs/1/io"},
		{"below a part of a volume", "/part/x", "/var/lib/docker/volumes/shared/_data/of/it/x"},
		{"a bind over a volume", "/data/units/hello", "/srv/units/hello"},
		{"a mount that the engine doesn't list", "/more/x", "/more/x"},
		{"a name that only begins like the bind's", "/data/units2", "/var/lib/docker/volumes/aod-data/_data/units2"},
	} {
		t.Run(c.what, func(t *testing.T) {
			if got, err := hostOf(t, engine, c.source); err != nil || got != c.want {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
	if n := inspections(api); n != 1 {
		t.Errorf("the engine was asked %d times", n)
	}
}

func TestWhatOnlyOurContainerHasCanNotBeMounted(t *testing.T) {
	engine, _ := contained(t, self{ids: []string{ownID}, points: ownPoints}, map[string]string{ownID: ownContainer})
	for what, source := range map[string]string{
		"its own file system": "/var/aod/io",
		"beside a volume":     "/data2",
		"a tmpfs mount":       "/data/fast/io",
		"a tmpfs of Podman's": "/data/podman/io",
		"a tmpfs option":      "/data/memory/io",
		"a foreign volume":    "/far/io",
	} {
		t.Run(what, func(t *testing.T) {
			got, err := hostOf(t, engine, source)
			if !fault.Is(err, fault.Unsupported) {
				t.Fatalf("%q, %v", got, err)
			}
			public := fault.Public(err)
			if !strings.Contains(public.Msg, "must be on a volume or a bind mount") || !strings.Contains(public.Hint, `volumes: ["aod-data:/data"]`) {
				t.Errorf("%s\n%s", public.Msg, public.Hint)
			}
		})
	}
}

func TestOutsideOfTheEnginesContainersPathsStayAsTheyAre(t *testing.T) {
	named := strings.Replace(ownContainer, ownID, neighbourID, 1)
	empty := `{"Id": "` + ownID + `", "HostConfig": {}, "Mounts": [{"Type": "bind", "Source": "/x", "Destination": "/not/here"}]}`
	bare := `{"Id": "` + ownID + `", "HostConfig": {}, "Mounts": []}`
	for _, c := range []struct {
		what       string
		me         self
		containers map[string]string
		asked      int
	}{
		{"in no container", self{points: ownPoints}, nil, 0},
		{"in a container of another engine", self{ids: []string{ownID, ownID[:12]}, points: ownPoints}, nil, 2},
		{"with a hostname that is a container's name", self{ids: []string{ownID[:12]}, points: ownPoints}, map[string]string{ownID[:12]: named}, 1},
		{"with the files of another container", self{ids: []string{ownID}, points: ownPoints}, map[string]string{ownID: empty}, 1},
		{"with the network of another container", self{ids: []string{ownID}, points: ownPoints}, map[string]string{ownID: bare}, 1},
		{"with an engine that tells nothing", self{ids: []string{ownID}, points: ownPoints}, map[string]string{ownID: "{}"}, 1},
	} {
		t.Run(c.what, func(t *testing.T) {
			engine, api := contained(t, c.me, c.containers)
			for range 3 {
				if got, err := hostOf(t, engine, "/data/io"); err != nil || got != "/data/io" {
					t.Errorf("%s, %v", got, err)
				}
			}
			if n := inspections(api); n != c.asked {
				t.Errorf("the engine was asked %d times", n)
			}
		})
	}
}

func TestTheNextWitnessIsHeardWhenTheFirstSpeaksOfAnother(t *testing.T) {
	other := `{"Id": "` + neighbourID + `", "HostConfig": {}, "Mounts": [{"Type": "bind", "Source": "/x", "Destination": "/not/here"}]}`
	engine, _ := contained(t, self{ids: []string{neighbourID, ownID}, points: ownPoints}, map[string]string{neighbourID: other, ownID: ownContainer})
	if got, err := hostOf(t, engine, "/part"); err != nil || got != "/var/lib/docker/volumes/shared/_data/of/it" {
		t.Errorf("%s, %v", got, err)
	}
}

func TestAnEngineThatFailsIsAskedForOurContainerAgain(t *testing.T) {
	engine, api := contained(t, self{ids: []string{ownID}, points: ownPoints}, nil)
	path := "GET /containers/" + ownID + "/json"
	api.answers[path] = answer(http.StatusInternalServerError, `{"message":"out of order"}`)
	if got, err := hostOf(t, engine, "/data"); !fault.Is(err, fault.Internal) {
		t.Fatalf("%q, %v", got, err)
	}
	api.answers[path] = answer(http.StatusOK, ownContainer)
	if got, err := hostOf(t, engine, "/data"); err != nil || got != "/var/lib/docker/volumes/aod-data/_data" {
		t.Errorf("%s, %v", got, err)
	}
}

func TestLinksOnTheWayToTheDataAreFollowedHere(t *testing.T) {
	root := resolved(t.TempDir())
	for _, dir := range []string{"volume/server", "elsewhere"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"data": "volume", "elsewhere/server": "../volume/server"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	told, err := json.Marshal(map[string]any{"Id": ownID, "Mounts": []map[string]string{
		{"Type": "bind", "Source": "/srv/aod", "Destination": filepath.Join(root, "data")}, // as it was asked for
	}})
	if err != nil {
		t.Fatal(err)
	}
	me := self{ids: []string{ownID}, points: []string{"/", filepath.Join(root, "volume")}} // as the kernel has it
	engine, _ := contained(t, me, map[string]string{ownID: string(told)})
	for _, source := range []string{"data/server", "elsewhere/server", "volume/server"} {
		if got, err := hostOf(t, engine, filepath.Join(root, source)); err != nil || got != "/srv/aod/server" {
			t.Errorf("%s: %s, %v", source, got, err)
		}
	}
}

func TestAContainerIsMadeWithTheHostsPaths(t *testing.T) {
	engine, api := contained(t, self{ids: []string{ownID}, points: ownPoints}, map[string]string{ownID: ownContainer})
	var made struct {
		HostConfig struct {
			Mounts []struct{ Source, Target string }
		}
	}
	api.answers["POST /containers/create"] = func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&made); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"Id":"new"}`)
	}
	mounts := []runtime.Mount{{Source: "/data/io", Target: "/io"}, {Source: "/data/hosts", Target: "/etc/hosts", ReadOnly: true}}
	kept := append([]runtime.Mount(nil), mounts...)
	if _, err := engine.Create(t.Context(), runtime.ContainerSpec{Image: "debian", Mounts: mounts}); err != nil {
		t.Fatal(err)
	}
	want := []struct{ Source, Target string }{
		{"/var/lib/docker/volumes/aod-data/_data/io", "/io"}, {"/var/lib/docker/volumes/aod-data/_data/hosts", "/etc/hosts"},
	}
	if diff := cmp.Diff(want, made.HostConfig.Mounts); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(kept, mounts); diff != "" {
		t.Errorf("the caller's own mounts were changed: %s", diff)
	}
	if _, err := engine.Create(t.Context(), runtime.ContainerSpec{Image: "debian", Mounts: []runtime.Mount{{Source: "/tmp/io", Target: "/io"}}}); !fault.Is(err, fault.Unsupported) {
		t.Error(err)
	}
}
