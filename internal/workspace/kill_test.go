package workspace

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// killedAt is the process that is killed: it applies what its environment says, and dies before
// the step with that number.
func killedAt(at int) {
	var found api.Changes
	raw, err := os.ReadFile(filepath.Join(os.Getenv("APPLY_FROM"), ChangesName))
	if err == nil {
		err = json.Unmarshal(raw, &found)
	}
	if err == nil {
		err = Apply(os.Getenv("APPLY_TO"), found.Changes, ApplyOptions{Run: "r", Open: from(os.Getenv("APPLY_FROM")), step: func(string) {
			if at--; at < 0 {
				os.Exit(9)
			}
		}})
	}
	if err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

func TestMain(m *testing.M) {
	if at, err := strconv.Atoi(os.Getenv("APPLY_KILLED_AT")); err == nil {
		killedAt(at)
	}
	os.Exit(m.Run())
}

func TestAnApplyThatIsKilledAtEachStepIsRepeated(t *testing.T) {
	base := mustStore(t, tree(t, project), Options{})
	work := copyOf(t, base)
	edit(t, work)
	want := contents(t, work)
	found, dest := compared(t, base, work, CompareOptions{})
	again := ApplyOptions{Run: "r", Open: from(dest)}
	for at := 0; ; at++ {
		target := tree(t, project)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "APPLY_KILLED_AT="+strconv.Itoa(at), "APPLY_FROM="+dest, "APPLY_TO="+target)
		err := cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code == 0 {
			if at < 40 {
				t.Errorf("an apply has only %d steps", at)
			}
			break
		} else if code != 9 {
			t.Fatalf("step %d: %v", at, err)
		}
		if _, err := os.Stat(filepath.Join(target, stageName, journalName)); err == nil {
			wantFault(t, Apply(target, nil, ApplyOptions{Run: "other"}), fault.Conflict, `"r" was killed`)
		}
		if err := Apply(target, found.Changes, again); err != nil {
			t.Fatalf("after its death at step %d: %v", at, err)
		}
		if diff := cmp.Diff(want, contents(t, target)); diff != "" {
			t.Fatalf("after its death at step %d: %s", at, diff)
		}
	}
}

func TestAKilledApplyWritesOverNoEdit(t *testing.T) {
	base := mustStore(t, tree(t, project), Options{})
	work := copyOf(t, base)
	edit(t, work)
	found, dest := compared(t, base, work, CompareOptions{})
	target := tree(t, project)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "APPLY_KILLED_AT=35", "APPLY_FROM="+dest, "APPLY_TO="+target)
	_ = cmd.Run()
	put(t, target, "with space", "mine\n")
	was := contents(t, target)
	err := Apply(target, found.Changes, ApplyOptions{Run: "r", Open: from(dest)})
	wantFault(t, err, fault.Conflict, "with space: was changed")
	if diff := cmp.Diff(was, contents(t, target)); diff != "" {
		t.Error("something was written", diff)
	}
	put(t, target, "with space", project["with space"])
	if err := Apply(target, found.Changes, ApplyOptions{Run: "r", Open: from(dest)}); err != nil {
		t.Error(err)
	}
}

func TestTwoAppliesAtOnceAreRefused(t *testing.T) {
	base := mustStore(t, tree(t, map[string]string{"a": "1"}), Options{})
	work := copyOf(t, base)
	put(t, work, "a", "2")
	found, dest := compared(t, base, work, CompareOptions{})
	target := tree(t, map[string]string{"a": "1"})
	var second error
	err := Apply(target, found.Changes, ApplyOptions{Run: "r", Open: from(dest), step: func(string) {
		if second == nil {
			second = Apply(target, found.Changes, ApplyOptions{Run: "r", Open: from(dest)})
		}
	}})
	if err != nil {
		t.Error(err)
	}
	wantFault(t, second, fault.Busy, "another apply")
}
