package images_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/images"
	"github.com/agent-on-demand/aod/internal/testing/basetest"
	"github.com/agent-on-demand/aod/runtime"
)

// maxBaseBytes leaves room for updates: the image has 115 to 145 MB, as its Debian has.
const maxBaseBytes = 200 << 20

func TestBaseImage(t *testing.T) {
	base := basetest.Build(t, "images")
	output := func(t *testing.T, script string) string {
		t.Helper()
		stdout, stderr, code := base.Run(t, runtime.ContainerSpec{Cmd: []string{"sh", "-c", script}})
		if code != 0 {
			t.Fatalf("%s: exit code %d: %s", script, code, stderr)
		}
		return strings.TrimSpace(stdout)
	}
	t.Run("starts the bridge", func(t *testing.T) {
		if diff := cmp.Diff([]string{"python3", "/capsule/run.py"}, base.Image.Cmd); diff != "" {
			t.Errorf("command (-want +got):\n%s", diff)
		}
	})
	t.Run("stays small", func(t *testing.T) {
		if base.Image.SizeBytes > maxBaseBytes {
			t.Errorf("%d bytes, more than %d", base.Image.SizeBytes, maxBaseBytes)
		}
	})
	t.Run("runs as the unprivileged user at home in /workspace", func(t *testing.T) {
		got := output(t, `echo "$(id -u):$(id -g) $(id -un) $HOME $PWD"; test -O /workspace`)
		if want := "65532:65532 aod /workspace /capsule"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("has what the library needs, compiled", func(t *testing.T) {
		got := output(t, `python3 -c 'import aod.bridge, yaml; print(aod.__cached__)'; ls /usr/lib/python3/dist-packages/aod/__pycache__/*.pyc | wc -l`)
		if !strings.Contains(got, "/aod/__pycache__/__init__.cpython-") || !strings.HasSuffix(got, "\n45") {
			t.Errorf("got %q", got)
		}
	})
	t.Run("has the Python that is said", func(t *testing.T) {
		got := output(t, `python3 -c 'import sys; print(*sys.version_info[:2])'`)
		if want := fmt.Sprint(images.BasePython[0], " ", images.BasePython[1]); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("keeps no package lists or caches", func(t *testing.T) {
		if got := output(t, "ls -A /var/lib/apt/lists; find /var/cache/apt /var/log -name partial -prune -o -type f -size +0 -print"); got != "" {
			t.Errorf("it keeps\n%s", got)
		}
	})
}
