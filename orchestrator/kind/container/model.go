package container

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime"
)

// modelDir is where a unit finds its model in the sandbox.
const modelDir = "/models"

// checkModels refuses models that no run could get. The error is an Input fault with all
// missing models, or an Unsupported fault.
func checkModels(engine Engine, units map[string]Extra) error {
	var findings []fault.Finding
	for _, name := range slices.Sorted(maps.Keys(units)) {
		model := units[name].ModelPath
		if model == "" {
			continue
		}
		if err := mountsModels(engine); err != nil {
			return err
		}
		if problem := modelProblem(model); problem != "" {
			findings = append(findings, fault.Finding{
				Pointer: "/unit/" + name + "/model_path",
				Message: fmt.Sprintf("%s: %q", problem, model),
				Hint:    "name a model's file, or a directory of them, on the server's machine",
			})
		}
	}
	if len(findings) == 0 {
		return nil
	}
	return fault.New(fault.Input, "cannot use a model of the configuration").WithFindings(findings)
}

// ModelPathInside returns the path in the sandbox of a model of this machine.
func ModelPathInside(source string) string { return path.Join(modelDir, filepath.Base(source)) }

// modelMount returns the mount of a model. Its error is that of mountsModels.
func modelMount(engine Engine, source string) (*runtime.Mount, error) {
	if err := mountsModels(engine); err != nil {
		return nil, err
	}
	return &runtime.Mount{Source: source, Target: ModelPathInside(source), ReadOnly: true}, nil
}

// mountsModels returns an Unsupported fault for an engine that doesn't see this machine's
// files. Models are too large to be copied to it for each run.
func mountsModels(engine Engine) error {
	if !runtime.IsRemote(engine) {
		return nil
	}
	return fault.New(fault.Unsupported, "the engine is on another machine, which doesn't see the model's files").
		WithHint("put the model into the unit's image, or use an engine of this machine")
}

// modelProblem returns what is wrong with a model's path, or "".
func modelProblem(path string) string {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "it isn't there"
	case err != nil:
		return "it can't be read"
	case !info.IsDir() && !info.Mode().IsRegular():
		return "it is neither a file nor a directory"
	}
	return ""
}
