package registry

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
)

func TestAnUploadIsSetBack(t *testing.T) {
	f := newFixture(t)
	first, _ := f.put("reader", capsuleTar(t, "", nil))
	second, _ := f.put("reader", capsuleTar(t, "", map[string]string{"data": "x"}))
	if got := f.versions("reader"); !slices.Equal(got, []string{second.Version + " current", first.Version}) {
		t.Errorf("versions %q", got)
	}
	u, err := f.Rollback(t.Context(), "reader", first.Version)
	if err != nil || u.Version != first.Version {
		t.Fatalf("Rollback: %+v, %v", u, err)
	}
	if got := f.restart().get("reader").Version; got != first.Version {
		t.Errorf("after a restart it is at %s, not %s", got, first.Version)
	}
	for _, version := range []string{"", "../x", "0123456789abcdef", second.Version[:8]} {
		if _, err := f.Rollback(t.Context(), "reader", version); !fault.Is(err, fault.NotFound) || fault.Public(err).Hint == "" {
			t.Errorf("Rollback to %q: %v", version, err)
		}
	}
}

func TestASetBackIsHeldAgainstThePolicy(t *testing.T) {
	f := newFixture(t)
	first, _ := f.put("reader", capsuleTar(t, "", nil))
	second, _ := f.put("reader", capsuleTar(t, "", map[string]string{"data": "x"}))
	f.accept = func(context.Context, *unit.Unit) error { return fault.New(fault.Forbidden, "no") }
	if _, err := f.Rollback(t.Context(), "reader", first.Version); !fault.Is(err, fault.Forbidden) {
		t.Errorf("Rollback: %v", err)
	}
	if got := f.get("reader").Version; got != second.Version {
		t.Errorf("it is at %s", got)
	}
}

func TestAnUploadIsRemoved(t *testing.T) {
	f := newFixture(t)
	u, _ := f.put("reader", capsuleTar(t, "", nil))
	if err := f.Remove(t.Context(), "reader"); err != nil {
		t.Fatal(err)
	}
	for what, f := range map[string]harness{"at once": f, "after a restart": f.restart()} {
		if _, err := f.Get(t.Context(), "reader"); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: Get: %v", what, err)
		}
		if got := f.lines(); len(got) != 0 {
			t.Errorf("%s: List: %q", what, got)
		}
		if _, err := f.Version(t.Context(), "reader", u.Version); err != nil {
			t.Errorf("%s: a run that has the version: %v", what, err)
		}
		if err := f.Remove(t.Context(), "reader"); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: Remove again: %v", what, err)
		}
	}
	if _, err := f.Rollback(t.Context(), "reader", u.Version); err != nil || f.get("reader").Version != u.Version {
		t.Errorf("it doesn't come back: %v", err)
	}
	must(t, f.Remove(t.Context(), "reader"))
	if n, err := f.Prune(t.Context(), func(string, string) bool { return false }); n != 1 || err != nil {
		t.Errorf("Prune: %d, %v", n, err)
	}
	if _, err := f.Versions(t.Context(), "reader"); !fault.Is(err, fault.NotFound) {
		t.Errorf("Versions: %v", err)
	}
}

func TestAUnitOfADirectoryStays(t *testing.T) {
	f := newFixture(t)
	dir := f.add("reader", nil)
	u := f.get("reader")
	err := f.Remove(t.Context(), "reader")
	if public := fault.Public(err); !fault.Is(err, fault.Conflict) || !strings.Contains(public.Msg, dir) || !strings.Contains(public.Hint, "remove that directory") {
		t.Errorf("Remove: %v", err)
	}
	if _, err := f.Rollback(t.Context(), "reader", u.Version); !fault.Is(err, fault.Conflict) {
		t.Errorf("Rollback: %v", err)
	}
	if got := f.versions("reader"); !slices.Equal(got, []string{u.Version + " current"}) {
		t.Errorf("versions %q", got)
	}
	must(t, os.RemoveAll(dir))
	if err := f.Remove(t.Context(), "reader"); !fault.Is(err, fault.NotFound) {
		t.Errorf("Remove after its directory: %v", err)
	}
}

func TestPruneKeepsWaysBack(t *testing.T) {
	f := newFixture(t)
	var all []string
	for i := range KeptUploads + 2 {
		u, _ := f.put("reader", capsuleTar(t, "", map[string]string{"data": fmt.Sprint(i)}))
		all = append([]string{u.Version}, all...)
	}
	oldest := all[len(all)-1]
	_, err := f.Rollback(t.Context(), "reader", oldest)
	must(t, err)
	if n, err := f.Prune(t.Context(), func(string, string) bool { return false }); n != 1 || err != nil {
		t.Errorf("Prune: %d, %v", n, err)
	}
	if got := f.versions("reader"); !slices.Equal(got, append(slices.Clone(all[:KeptUploads]), oldest+" current")) {
		t.Errorf("versions %q of %q", got, all)
	}
}

// versions lists what is kept, "VERSION" or "VERSION current".
func (f harness) versions(name string) (list []string) {
	f.t.Helper()
	kept, err := f.Versions(f.t.Context(), name)
	must(f.t, err)
	for _, v := range kept {
		line := v.Version
		if v.Current {
			line += " current"
		}
		list = append(list, line)
	}
	return list
}
