package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/peer/a2apeer"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// gathered are the files that a task has made, below the attempt's directory, where runtime.Layout has /io/output.
type gathered struct {
	list []gatheredFile
	left int64 // bytes that there may still be; below 0: without an end
}

type gatheredFile struct {
	name  string
	field string // of the output, as the agent says; "": it says nothing
}

// overLimit is the error of files that are more than a run may have.
type overLimit struct{ message string }

// Error implements error.
func (o *overLimit) Error() string { return o.message }

// gatherFiles writes the files of the task. Their names are the agent's as far as they are fit. The error is an
// *overLimit, one of package peer, a hostError or a fault.
func (e *errand) gatherFiles(ctx context.Context) (*gathered, error) {
	all := &gathered{left: e.Limits.OutputBytes}
	for _, artifact := range e.task.Artifacts {
		for _, part := range artifact.Parts {
			if !part.IsFile() {
				continue
			}
			if err := e.gatherFile(ctx, all, part); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// gatherFile writes one file of the task. One that lies elsewhere is left there.
func (e *errand) gatherFile(ctx context.Context, all *gathered, part a2apeer.Part) error {
	if len(all.list) == e.Limits.OutputFiles {
		return &overLimit{fmt.Sprintf("the agent gives more than %d files", e.Limits.OutputFiles)}
	}
	root, err := e.outputRoot(len(all.list) == 0)
	if err != nil {
		return run.StorageFault(err)
	}
	defer func() { _ = root.Close() }() // the files in it are closed
	name := all.nameFor(part)
	written, err := e.write(ctx, root, name, part, all.left)
	switch {
	case errors.Is(err, a2apeer.ErrElsewhere):
		e.Warn("a file of the agent's lies at another origin, and was not fetched")
		return root.Remove(name)
	case fault.Is(err, fault.TooLarge):
		return &overLimit{"the files of the agent have more than " + quantity.SizeText(e.Limits.OutputBytes)}
	case err != nil:
		return err
	}
	all.left -= written
	all.list = append(all.list, gatheredFile{name: name, field: part.Field})
	return nil
}

// outputRoot opens the directory that the files are written to; anew, it is empty.
func (e *errand) outputRoot(anew bool) (*os.Root, error) {
	dir := filepath.Join(e.AttemptDir(), "io", "output")
	if anew { // an earlier process may have died in the middle of it
		if err := safefs.RemoveTree(e.AttemptDir()); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

// write writes one file, and returns how many bytes it has.
func (e *errand) write(
	ctx context.Context, root *os.Root, name string, part a2apeer.Part, most int64,
) (n int64, err error) {
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return 0, run.StorageFault(err)
	}
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, run.StorageFault(err)
	}
	defer func() {
		if closed := file.Close(); err == nil && closed != nil {
			err = run.StorageFault(closed)
		}
	}()
	if part.URL != "" {
		if err = e.client.File(ctx, part.URL, file, most); err != nil {
			return 0, err
		}
		n, err = file.Seek(0, io.SeekCurrent)
		return n, err
	}
	if n = int64(len(part.Raw)); n > most {
		return 0, fault.New(fault.TooLarge, "a file is larger than is left of the limit")
	}
	if _, err = file.Write(part.Raw); err != nil {
		return 0, run.StorageFault(err)
	}
	return n, nil
}

// nameFor returns a name for a file below /io/output that no other has.
func (g *gathered) nameFor(part a2apeer.Part) string {
	name, err := contract.CleanName(part.Name, contract.StageOutput)
	if err != nil {
		name = part.Unnamed(len(g.list) + 1)
	}
	for base, n := path.Base(name), 2; g.has(name); n++ {
		name = path.Join(strconv.Itoa(n), base)
	}
	return name
}

// has reports whether a name is taken, or lies below or above one that is.
func (g *gathered) has(name string) bool {
	return slices.ContainsFunc(g.list, func(f gatheredFile) bool {
		return f.name == name || isBelow(f.name, name) || isBelow(name, f.name)
	})
}

// isBelow reports whether one name has the other as a directory.
func isBelow(name, dir string) bool {
	return len(name) > len(dir) && name[:len(dir)] == dir && name[len(dir)] == '/'
}

// name sets fields of the output to the names of the files: first the fields that the agent names, then those of the
// contract in their order. What the data says already stays.
func (g *gathered) name(values map[string]any, schema *contract.Schema) {
	places := schema.TakingFiles()
	var rest []string
	for _, f := range g.list {
		if !slices.Contains(places, f.field) {
			rest = append(rest, f.name)
			continue
		}
		nameIn(values, schema, f.field, f.name)
	}
	for _, name := range rest {
		for _, place := range places {
			if nameIn(values, schema, place, name) {
				break
			}
		}
	}
}

// nameIn puts a name into a field, if the field takes one more.
func nameIn(values map[string]any, schema *contract.Schema, field, name string) bool {
	list, isList := values[field].([]any)
	switch {
	case schema.IsList(field) && (isList || values[field] == nil):
		values[field] = append(list, name)
	case values[field] == nil:
		values[field] = name
	default:
		return false
	}
	return true
}

// missing finds files that the output names and the agent didn't give.
func (g *gathered) missing(schema *contract.Schema, output contract.Payload) (findings []fault.Finding) {
	for _, ref := range schema.FileRefs(output) {
		if ref.Err != nil || !slices.ContainsFunc(g.list, func(f gatheredFile) bool { return f.name == ref.Name }) {
			findings = append(findings,
				fault.Finding{Pointer: ref.Pointer, Message: "it names a file that the agent didn't give"})
		}
	}
	return findings
}

// deliverFiles puts the files where the run's files belong, each with the field of the output that names it.
func (e *errand) deliverFiles(g *gathered, output contract.Payload) ([]api.File, error) {
	if len(g.list) == 0 {
		return nil, nil
	}
	layout := runtime.OpenLayout(e.AttemptDir(), "")
	listing, err := layout.Collect(e.Limits)
	if err != nil {
		return nil, err
	}
	delivered, err := e.moveOut(layout, listing.Files)
	if err != nil {
		return nil, err
	}
	return e.Delivered(delivered, output), nil
}

// moveOut moves the files to the directory that the user asked for, or to that of the run.
func (e *errand) moveOut(layout runtime.Layout, found []runtime.Found) ([]runtime.File, error) {
	if e.OutDir != "" {
		return layout.Deliver(found, e.OutDir)
	}
	if err := safefs.RemoveTree(e.OutputDir()); err != nil { // of a process that died before the end was stored
		return nil, run.StorageFault(err)
	}
	return layout.Publish(found, e.OutputDir())
}
