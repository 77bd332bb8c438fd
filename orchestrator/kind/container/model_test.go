package container

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime/enginetest"
)

func TestModelsAreLookedForAtTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "tiny.gguf")
	must(os.WriteFile(file, nil, 0o600))
	units := func(paths ...string) Options {
		o := Options{Units: map[string]Extra{}}
		for i, path := range paths {
			o.Units[fmt.Sprintf("u%d", i)] = Extra{ModelPath: path}
		}
		return o
	}
	open := func(o Options) error {
		kind := New(enginetest.NewFake(nil), o)
		defer kind.Close()
		return kind.Open(run.Home{Dir: t.TempDir()})
	}
	if err := open(units(file, dir, "")); err != nil {
		t.Error(err)
	}
	err := open(units(file, file+"-gone", "/dev/null", file+"/x"))
	if !fault.Is(err, fault.Input) || len(fault.Public(err).Findings) != 3 {
		t.Fatalf("error %v", err)
	}
	for i, want := range []string{"/unit/u1/model_path it isn't there", "/unit/u2/model_path it is neither", "/unit/u3/model_path it can't be read"} {
		if f := fault.Public(err).Findings[i]; !strings.HasPrefix(f.Pointer+" "+f.Message, want) || f.Hint == "" {
			t.Errorf("finding %+v, want %q", f, want)
		}
	}
}
