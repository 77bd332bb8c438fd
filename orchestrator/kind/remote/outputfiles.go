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

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/peer/a2apeer"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// outputFiles are the files that a task has made, below the attempt's directory, where runtime.Layout has /io/output.
type outputFiles struct {
	run    *run.Run
	client *a2apeer.Client
	list   []outputFile
	left   int64 // bytes that there may still be; below 0: without an end
}

type outputFile struct {
	name  string
	field string // of the output, as the agent says; "": it says nothing
}

// overLimit is the error of files that are more than a run may have.
type overLimit struct{ message string }

// Error implements error.
func (o *overLimit) Error() string { return o.message }

// gather writes the files of the task. Their names are the agent's as far as they are fit. The error is an
// *overLimit, one of package peer, a hostError or a fault.
func (g *outputFiles) gather(ctx context.Context, artifacts []a2apeer.Artifact) error {
	for _, artifact := range artifacts {
		for _, part := range artifact.Parts {
			if !part.IsFile() {
				continue
			}
			if err := g.add(ctx, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// add writes one file of the task. One that lies elsewhere is left there.
func (g *outputFiles) add(ctx context.Context, part a2apeer.Part) error {
	if len(g.list) == g.run.Limits.OutputFiles {
		return &overLimit{fmt.Sprintf("the agent gives more than %d files", g.run.Limits.OutputFiles)}
	}
	root, err := g.root(len(g.list) == 0)
	if err != nil {
		return run.StorageFault(err)
	}
	defer func() { _ = root.Close() }() // the files in it are closed
	name := g.nameFor(part)
	written, err := g.write(ctx, root, name, part)
	switch {
	case errors.Is(err, a2apeer.ErrElsewhere):
		g.run.Warn("a file of the agent's lies at another origin, and was not fetched")
		return root.Remove(name)
	case fault.Is(err, fault.TooLarge):
		return &overLimit{"the files of the agent have more than " + quantity.SizeText(g.run.Limits.OutputBytes)}
	case err != nil:
		return err
	}
	g.left -= written
	g.list = append(g.list, outputFile{name: name, field: part.Field})
	return nil
}

// root opens the directory that the files are written to; anew, it is empty.
func (g *outputFiles) root(anew bool) (*os.Root, error) {
	dir := filepath.Join(g.run.AttemptDir(), "io", "output")
	if anew { // an earlier process may have died in the middle of it
		if err := safefs.RemoveTree(g.run.AttemptDir()); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

// write writes one file, and returns how many bytes it has.
func (g *outputFiles) write(
	ctx context.Context, root *os.Root, name string, part a2apeer.Part,
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
		if err = g.client.File(ctx, part.URL, file, g.left); err != nil {
			return 0, err
		}
		n, err = file.Seek(0, io.SeekCurrent)
		return n, err
	}
	if n = int64(len(part.Raw)); n > g.left {
		return 0, fault.New(fault.TooLarge, "a file is larger than is left of the limit")
	}
	if _, err = file.Write(part.Raw); err != nil {
		return 0, run.StorageFault(err)
	}
	return n, nil
}

// nameFor returns a name for a file below /io/output that no other has.
func (g *outputFiles) nameFor(part a2apeer.Part) string {
	name, err := contract.CleanName(part.Name, contract.StageOutput)
	if err != nil {
		name = part.Unnamed(len(g.list) + 1)
	}
	return contract.FreeName(name, path.Base(name), g.has)
}

// has reports whether a name is taken, or lies below or above one that is.
func (g *outputFiles) has(name string) bool {
	return slices.ContainsFunc(g.list, func(f outputFile) bool {
		return f.name == name || isBelow(f.name, name) || isBelow(name, f.name)
	})
}

// isBelow reports whether one name has the other as a directory.
func isBelow(name, dir string) bool {
	return len(name) > len(dir) && name[:len(dir)] == dir && name[len(dir)] == '/'
}

// name sets fields of the output to the names of the files: first the fields that the agent names, then those of the
// contract in their order. What the data says already stays.
func (g *outputFiles) name(values map[string]any, schema *contract.Schema) {
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
func (g *outputFiles) missing(schema *contract.Schema, output contract.Payload) (findings []fault.Finding) {
	for _, ref := range schema.FileRefs(output) {
		if ref.Err != nil || !slices.ContainsFunc(g.list, func(f outputFile) bool { return f.name == ref.Name }) {
			findings = append(findings,
				fault.Finding{Pointer: ref.Pointer, Message: "it names a file that the agent didn't give"})
		}
	}
	return findings
}

// deliver puts the files where the run's files belong, each with the field of the output that names it.
func (g *outputFiles) deliver(output contract.Payload) ([]api.File, error) {
	if len(g.list) == 0 {
		return nil, nil
	}
	layout := runtime.OpenLayout(g.run.AttemptDir(), "")
	listing, err := layout.Collect(g.run.Limits)
	if err != nil {
		return nil, err
	}
	delivered, err := g.moveOut(layout, listing.Files)
	if err != nil {
		return nil, err
	}
	return g.run.Delivered(delivered, output), nil
}

// moveOut moves the files to the directory that the user asked for, or to that of the run.
func (g *outputFiles) moveOut(layout runtime.Layout, found []runtime.Found) ([]runtime.File, error) {
	if g.run.OutDir != "" {
		return layout.Deliver(found, g.run.OutDir)
	}
	if err := safefs.RemoveTree(g.run.OutputDir()); err != nil { // of a process that died before the end was stored
		return nil, run.StorageFault(err)
	}
	return layout.Publish(found, g.run.OutputDir())
}
