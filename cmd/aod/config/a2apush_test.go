package config

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestThePushesOfTheBlockOfA2A(t *testing.T) {
	c := mustLoad(t, given{file: "a2a:\n  push: false\n  push_private: [Hooks.internal, fixed.internal=10.0.0.5]\n"})
	if diff := cmp.Diff([]string{"hooks.internal", "fixed.internal=10.0.0.5"}, c.A2A.PushPrivate); diff != "" || c.A2A.Push {
		t.Errorf("push is %v, %s", c.A2A.Push, diff)
	}
	if got := fmt.Sprint(c.A2A.PushExceptions()); got != "[hooks.internal fixed.internal=10.0.0.5]" {
		t.Errorf("the hosts are %s", got)
	}
	if at := source(c, "a2a.push"); at != "aod.yaml:2" {
		t.Errorf("push comes from %s", at)
	}
	if c := mustLoad(t, given{}); !c.A2A.Push {
		t.Error("without the block there are no pushes")
	}
	for text, want := range map[string]string{
		"a2a: {push: maybe}":              "aod.yaml:1: a2a.push: ",
		"a2a: {push_private: [10.0.0.5]}": `aod.yaml:1: a2a.push_private: "10.0.0.5" is an address`,
		"a2a: {pushes: true}":             `aod.yaml:1: there is no setting "a2a.pushes"`,
	} {
		_, err := load(t, given{file: text})
		if err == nil {
			t.Errorf("%s is taken", text)
			continue
		}
		if found := findings(t, err); len(found) != 1 || len(found[0]) < len(want) || found[0][:len(want)] != want {
			t.Errorf("%s: %q", text, found)
		}
	}
}
