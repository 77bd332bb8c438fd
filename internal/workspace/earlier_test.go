package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// session is a base, and what two turns made of it.
func session(t *testing.T, first, second func(work string)) (one, two api.Changes, dest string) {
	t.Helper()
	base := mustStore(t, tree(t, map[string]string{"a": "1\n2\n3\n4\n5\n6\n7\n8\n", "b": "b\n", "c": "c\n"}), Options{})
	work := copyOf(t, base)
	first(work)
	one, _ = compared(t, base, work, CompareOptions{})
	second(work)
	two, dest = compared(t, base, work, CompareOptions{})
	return one, two, dest
}

func TestASecondChangeOfAFileIsApplied(t *testing.T) {
	one, two, dest := session(t, func(work string) {
		put(t, work, "a", "first\n")
		put(t, work, "new", "first\n")
		put(t, work, "same", "same\n")
		_ = os.Remove(filepath.Join(work, "b"))
		_ = os.Remove(filepath.Join(work, "c"))
	}, func(work string) {
		put(t, work, "a", "second\n")
		put(t, work, "new*", "second\n")
		put(t, work, "b", "back\n")
	})
	applied := map[string]string{"a": "first\n", "new": "first\n", "same": "same\n"}
	earlier := func() ([]api.Change, error) { return one.Changes, nil }
	opts := ApplyOptions{Run: "r", Open: from(dest), Earlier: earlier}
	target := tree(t, applied)
	if err := Apply(target, two.Changes, opts); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": "second\n", "new*": "second\n", "same": "same\n", "b": "back\n"}
	if diff := cmp.Diff(want, contents(t, target)); diff != "" {
		t.Error(diff)
	}
	for name, c := range map[string]struct {
		path, content string
		earlier       func() ([]api.Change, error)
	}{
		"what a person made of it since": {"a", "mine\n", earlier},
		"what another file was":          {"new", "same\n", earlier},
		"another mode":                   {"a*", "first\n", earlier},
		"a link":                         {"new", "-> a", earlier},
		"no session":                     {"same", "same\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			target := tree(t, applied)
			put(t, target, c.path, c.content)
			was := contents(t, target)
			opts.Earlier = c.earlier
			wantFault(t, Apply(target, two.Changes, opts), fault.Conflict, "nothing was written")
			if diff := cmp.Diff(was, contents(t, target)); diff != "" {
				t.Error(diff)
			}
		})
	}
	gone := errors.New("the server is gone")
	opts.Earlier = func() ([]api.Change, error) { return nil, gone }
	if err := Apply(tree(t, applied), two.Changes, opts); !errors.Is(err, gone) {
		t.Errorf("without an answer: %v", err)
	}
}

// The hint of a conflict is followed: a person has changed what was applied.
func TestThePatchOfTheHintApplies(t *testing.T) {
	_, two, dest := session(t, func(work string) {
		put(t, work, "a", "1\n2\n3\n4\n5\n6\n7\neight\n")
	}, func(work string) {
		put(t, work, "a", "one\n2\n3\n4\n5\n6\n7\neight\n")
	})
	target := tree(t, map[string]string{"a": "1\n2\n3\n4\n5\n6\n7\n8\n"})
	git(t, target, "init", "-q")
	git(t, target, "add", "-A")
	git(t, target, "commit", "-qm", "base")
	put(t, target, "a", "1\n2\n3\n4\nmine\n6\n7\neight\n") // the first turn was applied
	err := Apply(target, two.Changes, ApplyOptions{Run: "RUN", Open: from(dest)})
	wantFault(t, err, fault.Conflict, "git add -A && aod diff RUN --patch | git apply -3")
	git(t, target, "add", "-A")
	git(t, target, "apply", "-3", filepath.Join(dest, PatchName))
	if got := contents(t, target)["a"]; got != "one\n2\n3\n4\nmine\n6\n7\neight\n" {
		t.Errorf("merged to %q", got)
	}
}
