package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/runtime/initreport"
	"github.com/agent-on-demand/aod/safefs"
)

// fetch brings back what the program has left: the init's report, its result and its output
// files. What is more than may be is cut, and still too much.
func (d *depot) fetch(ctx context.Context) error {
	return d.with(ctx, func(id string) error {
		for _, part := range d.results() {
			if err := d.fetchTree(ctx, id, part.from, part.name, &part.room); err != nil {
				return err
			}
		}
		return nil
	})
}

// result is something that a run may leave.
type result struct {
	from, name string // where a carrier, and the layout, has it
	room       allowance
}

func (d *depot) results() []result {
	limits, reach := d.spec.Limits, path.Join(depotDir, reachName)
	results := []result{{path.Join(reach, "report"), "aod/report", allowance{initreport.MaxBytes, watchEntries}}}
	if d.spec.Filter != nil {
		return append(results, result{path.Join(reach, stdoutName), "aod/" + stdoutName, allowance{limits.ResultBytes, watchEntries}})
	}
	return append(
		results,
		result{path.Join(depotDir, "io", resultName), "io/" + resultName, allowance{limits.ResultBytes, watchEntries}},
		result{d.outputDir(), "io/output", allowance{limits.OutputBytes, limits.OutputFiles + 1}}, // one is itself
	)
}

// outputDir is where a carrier has /io/output.
func (d *depot) outputDir() string {
	if slices.ContainsFunc(d.shelves(), func(s shelf) bool { return s.target == ioDir+"/output" }) {
		return path.Join(depotDir, "output")
	}
	return path.Join(depotDir, "io", "output")
}

// fetchTree replaces what stands here by a name with what the program has left by it, which
// may be nothing.
func (d *depot) fetchTree(ctx context.Context, id, from, name string, allowance *allowance) error {
	into := d.layout.path("arriving")
	if err := errors.Join(safefs.RemoveTree(into), safefs.RemoveTree(d.layout.path(name)), mkdir(into, 0o700)); err != nil {
		return unwritable(err)
	}
	if err := d.copyOut(ctx, id, from, into, allowance); err != nil {
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		return err
	}
	return unwritable(os.Rename(path.Join(into, path.Base(name)), d.layout.path(name)))
}

// copyOut unpacks what stands at a path of the container into a directory of this host.
func (d *depot) copyOut(ctx context.Context, id, from, into string, allowance *allowance) (err error) {
	stream, err := d.engine.CopyFrom(ctx, id, from)
	if err != nil {
		return fmt.Errorf("fetch files: %w", err)
	}
	defer func() { err = errors.Join(err, ignoreEOF(stream.Close())) }()
	root, err := os.OpenRoot(into)
	if err != nil {
		return unwritable(err)
	}
	defer func() { _ = root.Close() }() // what was written was closed
	return unpack(root, stream, allowance)
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
