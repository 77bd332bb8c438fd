package au

import (
	"path/filepath"
	"testing"

	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
)

func TestAProgramAloneHasNoSource(t *testing.T) {
	data := t.TempDir()
	env := &cli.Env{Data: data}
	if got := sourceOf(env, &capsule.Capsule{Dir: filepath.Join(data, "au", "0123")}); got != nil {
		t.Errorf("%+v", got)
	}
}
