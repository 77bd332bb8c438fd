package units

import (
	"context"
	"io"
	"sync"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/capsule/registry"
	"github.com/agent-on-demand/aod/capsule/unit"
)

// Draft shows a text as if it were that of a flow in its newest state, with the findings that it would have there. Of a
// text that can't be read there is no graph. Nothing is stored.
func (c *Catalogue) Draft(ctx context.Context, name string, text []byte) (api.UnitFlow, *flow.Flow, error) {
	u, err := c.names.find(ctx, name)
	if fault.Is(err, fault.Capsule) || err == nil && u.Problem != nil {
		broken, err := c.broken(ctx, name)
		if err != nil {
			return api.UnitFlow{}, nil, err
		}
		return c.draft(ctx, &unit.Unit{Name: name, Source: unit.FromDirectory}, broken.Origin, text)
	}
	if err != nil {
		return api.UnitFlow{}, nil, err
	}
	of, err := flowIn(u)
	if err != nil {
		return api.UnitFlow{}, nil, err
	}
	return c.draft(ctx, u, of.Dir, text)
}

// draft shows a text as that of a unit, beside the other files of a directory.
func (c *Catalogue) draft(
	ctx context.Context, as *unit.Unit, dir string, text []byte,
) (api.UnitFlow, *flow.Flow, error) {
	of, err := capsule.LoadFlow(dir, text)
	if fault.Is(err, fault.Capsule) {
		return faulty(as.Name, text, fault.Public(err)), nil, nil
	}
	if err != nil {
		return api.UnitFlow{}, nil, err
	}
	if of.Flow == nil {
		return api.UnitFlow{}, nil, noFlow(as.Name)
	}
	of.Name = as.Name
	u := unit.Of(of)
	u.Source, u.Version, u.Team = as.Source, as.Version, as.Team
	c.opts.Rules.Govern(u)
	return c.checked(ctx, u, of, text)
}

// PutFlow makes a version of an upload with another text of its flow, and all its other files as they are. The version
// that it comes from must be the current one, or the error is a Conflict fault, unless the text is already saved. It is
// a Capsule fault for a text with errors, also with such as an upload isn't refused for.
func (c *Catalogue) PutFlow(ctx context.Context, name, from string, text []byte) (api.Unit, error) {
	u, err := c.names.version(ctx, name, from)
	if err != nil {
		return api.Unit{}, err
	}
	of, err := flowIn(u)
	if err != nil {
		return api.Unit{}, err
	}
	shown, _, err := c.draft(ctx, u, of.Dir, text)
	if err != nil {
		return api.Unit{}, err
	}
	if len(fault.Errors(shown.Findings)) > 0 {
		return api.Unit{}, fault.New(fault.Capsule, "the flow of %s has problems", name).
			WithHint("fix what is listed").WithFindings(shown.Findings)
	}
	files, err := of.Context()
	if err != nil {
		return api.Unit{}, err
	}
	archive, w := io.Pipe()
	var writer sync.WaitGroup
	writer.Go(func() { _ = w.CloseWithError(files.WriteWith(w, flow.FileName, text)) })
	made, _, err := c.put(ctx, u.Name, archive, registry.Upload{Onto: from})
	_ = archive.Close() // ends a writer that wasn't read to its end; it never fails
	writer.Wait()
	return made, err
}
