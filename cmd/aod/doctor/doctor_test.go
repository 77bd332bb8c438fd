package doctor

import (
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/runtime"
)

func TestTheDoctorTellsWhatConfinesSandboxes(t *testing.T) {
	for _, c := range []struct {
		info   runtime.EngineInfo
		health health
		found  string
	}{
		{runtime.EngineInfo{Security: []string{"apparmor", "seccomp"}, SeccompProfile: "default"}, fine, "apparmor, seccomp"},
		{runtime.EngineInfo{Security: []string{"seccomp"}, SeccompProfile: "unconfined"}, worry, "sandboxes have AOD's"},
		{runtime.EngineInfo{Security: []string{"apparmor"}}, worry, "no seccomp"},
		{runtime.EngineInfo{}, worry, "none; no seccomp"},
	} {
		got := examineConfinement(c.info)
		if got.Health != c.health || !strings.Contains(got.Found, c.found) || (got.Fix == "") != (c.health == fine) ||
			strings.Contains(got.Fix, "allow_unconfined") != strings.Contains(c.found, "no seccomp") {
			t.Errorf("%+v: %+v", c.info, got)
		}
	}
	for limited, want := range map[bool]health{true: fine, false: worry} {
		if got := examineSwap(runtime.EngineInfo{SwapLimit: limited}); got.Health != want {
			t.Errorf("swap limit %v: %+v", limited, got)
		}
	}
}
