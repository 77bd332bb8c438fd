package workers

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/runtime"
)

// Images are the images of an engine, for other engines.
type Images interface {
	Image(ctx context.Context, ref string) (runtime.Image, error)
	Carrier() runtime.ImageCarrier
}

// mostSaves is how many images the engine saves at once: it may write each to its disk first.
const mostSaves = 2

// image sends an image that the lease's unit names, if the server's engine has it. That it has not, or isn't there, is
// the same to a worker, which asks a registry then.
func (h face) image(w http.ResponseWriter, r *http.Request, l *lease) error {
	ref := r.PathValue("ref")
	if !slices.Contains(wire.Images(l.run.Unit), ref) {
		return fault.New(fault.Forbidden, "the run's unit names no image %s", fault.Quote(ref))
	}
	if h.opts.Images == nil {
		return errNoImage(nil, ref)
	}
	if err := h.saving.Acquire(r.Context(), 1); err != nil {
		return context.Cause(r.Context())
	}
	defer h.saving.Release(1)
	found, err := h.opts.Images.Image(r.Context(), ref)
	if err != nil {
		return errNoImage(err, ref)
	}
	saved, err := h.opts.Images.Carrier().Save(r.Context(), ref)
	if err != nil {
		return errNoImage(err, ref)
	}
	defer func() { _ = saved.Close() }() // read only
	w.Header().Set("Content-Type", "application/x-tar")
	w.Header().Set(wire.HeaderSize, strconv.FormatInt(found.SizeBytes, 10))
	sent, err := io.Copy(w, saved)
	h.logger.Info("image sent", "run", l.run.ID, "worker", l.Worker, "bytes", sent)
	return err
}

func errNoImage(err error, ref string) error {
	return fault.Wrap(fault.NotFound, err, "the server's engine doesn't give the image %s", fault.Quote(ref)).
		WithHint("build or load it there (`docker load`); what is named by its digest comes from a registry alone")
}
