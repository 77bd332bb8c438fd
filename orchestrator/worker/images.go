package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/orchestrator/run"
	"github.com/agent-on-demand/aod/runtime"
)

// Engine is the part of a container engine that images are fetched for.
type Engine interface {
	Carrier() runtime.ImageCarrier
	Image(ctx context.Context, ref string) (runtime.Image, error)
	RemoveImage(ctx context.Context, ref string) error
}

// Images fetches images from the server that builds here name and the engine lacks, each by a lease whose unit names
// it, and removes them when no unit here names them any more. It implements container.ImageSource when New has got it.
type Images struct {
	engine Engine
	worker *Worker

	mu      sync.Mutex
	fetched map[string]string // ids by the references that weren't here before
}

// NewImages returns what fetches images for an engine.
func NewImages(engine Engine) *Images { return &Images{engine: engine, fetched: map[string]string{}} }

// fetchedFile has the images that were fetched: only they are removed.
func (i *Images) fetchedFile() string { return filepath.Join(i.worker.opts.Home, "images.json") }

// open reads which images an earlier process has fetched.
func (i *Images) open(w *Worker) error {
	i.worker = w
	raw, err := os.ReadFile(i.fetchedFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err = errors.Join(err, json.Unmarshal(raw, &i.fetched)); err != nil {
		return fault.Wrap(fault.Internal, err, "the list of fetched images can't be read: %q", i.fetchedFile()).
			WithHint("remove it, and those images stay until `docker image rm`")
	}
	return nil
}

// Bring implements container.ImageSource. The error is a NotFound fault if no lease here names the image, and a fault
// that says why if the server doesn't give it. While the server is away it waits.
func (i *Images) Bring(ctx context.Context, ref, also string) error {
	_, err := i.engine.Image(ctx, ref)
	if fault.Is(err, fault.NotFound) {
		err = i.fetch(ctx, ref)
	}
	if err != nil || also == "" {
		return err
	}
	before, missing := i.engine.Image(ctx, also)
	if err := i.engine.Carrier().TagImage(ctx, ref, also); err != nil {
		return err
	}
	if fault.Is(missing, fault.NotFound) || i.has(also, before.ID) {
		return i.note(ctx, also)
	}
	return nil
}

// fetch fetches an image by the first lease that is still good.
func (i *Images) fetch(ctx context.Context, ref string) error {
	for _, lease := range i.leasesFor(ref) {
		err := i.fetchBy(ctx, lease, ref)
		switch {
		case err == nil:
			return i.note(ctx, ref)
		case !errors.Is(err, errVoid):
			return err
		}
	}
	return fault.New(fault.NotFound, "no run here has a unit that names the image")
}

// leasesFor are those whose units name an image.
func (i *Images) leasesFor(ref string) (leases []string) {
	for _, h := range i.worker.all() {
		a := h.now().Assignment
		if a == nil {
			continue
		}
		u, err := i.worker.units.Version(context.Background(), a.Unit.Name, a.Unit.Version)
		if err == nil && slices.Contains(wire.Images(u), ref) {
			leases = append(leases, a.Lease)
		}
	}
	return leases
}

// mostCuts is how often an image may break off on its way: it begins anew each time.
const mostCuts = 5

// fetchBy fetches an image by a lease.
func (i *Images) fetchBy(ctx context.Context, lease, ref string) error {
	cuts, final := 0, error(nil)
	err := i.worker.link.repeat(ctx, "fetch an image", func() error {
		begun, err := i.fetchOnce(ctx, lease, ref)
		if begun {
			cuts++
		}
		if cuts >= mostCuts || errors.Is(err, runtime.ErrUnreachable) {
			final = err
			return nil
		}
		return err
	})
	return cmp.Or(final, err)
}

// fetchOnce has the engine load an image as it comes, and reports whether some of it has come.
func (i *Images) fetchOnce(ctx context.Context, lease, ref string) (begun bool, err error) {
	w, began := i.worker, time.Now()
	r, err := w.link.request(ctx, http.MethodGet, leasePath(lease, wire.Image, namePath(ref)), nil)
	if err != nil {
		return false, err
	}
	response, err := w.link.do(w.link.files, r)
	if err != nil {
		return false, err
	}
	defer func() { _ = response.Body.Close() }() // it was read
	size, err := strconv.ParseInt(response.Header.Get(wire.HeaderSize), 10, 64)
	if err != nil || size < 0 || size > mostImage {
		return false, fault.New(fault.TooLarge, "the server's image %s has no size, or one of more than %d GiB",
			fault.Quote(ref), mostImage>>30)
	}
	if err := w.disks.Room(2 * size); err != nil { // the engine has the archive, and then the image
		return false, err
	}
	in := &intake{from: &run.Source{Reader: response.Body}, disks: w.disks}
	if err := i.engine.Carrier().Load(ctx, ref, in); err != nil {
		if in.from.Err != nil && ctx.Err() == nil {
			err = lostIf(in.from.Err)
		}
		return in.n > 0, err
	}
	w.logger.Info("image fetched", "image", ref, "bytes", in.n, "took", time.Since(began))
	return true, nil
}

// mostImage bounds an image on its way, in bytes.
const mostImage = 64 << 30

// lookAfter is after how many bytes of an image the disk is looked at again.
const lookAfter = 64 << 20

// intake is an image as it comes.
type intake struct {
	from  *run.Source
	disks *runtime.Disks
	n     int64
}

// Read implements io.Reader.
func (in *intake) Read(b []byte) (int, error) {
	n, err := in.from.Read(b)
	before := in.n
	if in.n += int64(n); in.n > mostImage {
		return n, fault.New(fault.TooLarge, "the image has more than %d GiB", mostImage>>30)
	}
	if before/lookAfter != in.n/lookAfter {
		err = errors.Join(err, in.disks.Room(0))
	}
	if err != nil && errors.Is(err, io.EOF) {
		return n, io.EOF
	}
	return n, err
}

// has reports whether a reference is one that was fetched.
func (i *Images) has(ref, id string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return id != "" && i.fetched[ref] == id
}

// note remembers that an image was fetched.
func (i *Images) note(ctx context.Context, ref string) error {
	image, err := i.engine.Image(ctx, ref)
	if err != nil {
		return err
	}
	return i.change(func() { i.fetched[ref] = image.ID })
}

// change changes which images were fetched, also on the disk.
func (i *Images) change(do func()) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	do()
	raw, err := json.Marshal(i.fetched)
	if err != nil {
		return err
	}
	return run.StorageFault(safefs.Replace(i.fetchedFile(), raw, safefs.ReplaceOptions{Mode: 0o600, Synced: true}))
}

// all are the images that were fetched.
func (i *Images) all() map[string]string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return maps.Clone(i.fetched)
}

// prune removes what was fetched and no unit in use names. What somebody has put in its place stays.
func (i *Images) prune(ctx context.Context, used []*unit.Unit) (removed int, err error) {
	for ref, id := range i.all() {
		named := func(u *unit.Unit) bool { return slices.Contains(wire.Images(u), ref) }
		if slices.ContainsFunc(used, named) || slices.ContainsFunc(i.worker.underwayUnits(), named) {
			continue
		}
		image, err := i.engine.Image(ctx, ref)
		switch {
		case err != nil && !fault.Is(err, fault.NotFound):
			return removed, err
		case err == nil && image.ID == id:
			if err := i.engine.RemoveImage(ctx, ref); err != nil {
				// another one stands on it, or a container has it
				i.worker.logger.Info("image stays for now", "image", ref, fault.LogAttr(err))
				continue
			}
			removed++
		}
		if err := i.change(func() { delete(i.fetched, ref) }); err != nil {
			return removed, err
		}
	}
	return removed, nil
}
