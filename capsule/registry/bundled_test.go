package registry

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/bundled"
)

func TestOnlyAODsOwnUnitsHaveItsNames(t *testing.T) {
	f := newFixture(t)
	dir, err := bundled.Dir(t.TempDir(), nil)
	must(t, err)
	reserved := map[string]string{"agent.yaml": "name: aod.code\n"}
	f.add("mine", reserved)
	f.Registry, err = New(Options{Home: f.home, Sources: []string{f.source}, Bundled: dir})
	must(t, err)
	if got, want := f.lines(), []string{"aod.code served from directory", "mine: invalid_input"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if u := f.get(bundled.Code); filepath.Dir(u.Origin) != dir {
		t.Errorf("it is that of %s", u.Origin)
	}
	_, _, err = f.Put(t.Context(), "aod.other", bytes.NewReader(capsuleTar(t, "", map[string]string{"agent.yaml": "name: aod.other\n"})), Upload{})
	if !fault.Is(err, fault.Input) {
		t.Errorf("an upload: %v", err)
	}
	_, _, err = f.Put(t.Context(), "a.aod.code", bytes.NewReader(capsuleTar(t, "", reserved)), Upload{Team: "a"})
	if !fault.Is(err, fault.Input) {
		t.Errorf("a team's upload: %v", err)
	}
	must(t, os.RemoveAll(filepath.Join(f.source, "mine")))
	if f.Registry, err = New(Options{Home: f.home, Sources: []string{f.source}}); err != nil {
		t.Fatal(err)
	}
	if got := f.lines(); len(got) > 0 {
		t.Errorf("it is offered where it is off: %q", got)
	}
}
