package runtime

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/runtime/tunnel"
)

// depot is where the directories of one attempt lie with an engine that doesn't see this
// host's files: a volume each. They are filled and read through containers that have the
// volumes and never start. On this host the Layout's directories hold what was, and what
// will be, carried.
type depot struct {
	engine RemoteEngine
	layout Layout
	spec   Spec
	tunnel *tunnel.Listener
	sent   sentFiles
	gone   atomic.Bool // what would carry files now would make the volumes anew
}

// depotDir is where a carrying container has the volumes. No image has it.
const depotDir = "/.aod-files"

// At returns the layout for a run on the engine: the same where the engine sees this
// host's files.
func (l Layout) At(engine Containers, spec Spec) Layout {
	remote, ok := remoteOf(engine)
	if !ok {
		return l
	}
	l.depot = &depot{engine: remote, layout: l, spec: spec, tunnel: tunnel.New()}
	return l
}

// Porter returns what carries the files of handoffs; nil where nothing has to be carried,
// because Outgoing and Incoming are the very directories that the program sees.
func (l Layout) Porter() *Porter {
	if l.depot == nil {
		return nil
	}
	return &Porter{l.depot}
}

// shelf is one volume of a depot.
type shelf struct {
	name     string // in depotDir
	source   string // the directory on this host
	target   string // in the sandbox
	readOnly bool
}

// shelves are the volumes of the attempt. As with mounts, a directory of /io that the image
// declares as a volume needs one by itself.
func (d *depot) shelves() []shelf {
	l := d.layout
	if d.spec.Filter != nil {
		return []shelf{
			{"input", l.input(), inputDir, true},
			{"aod", l.path("aod"), aodDir, true},
			{reachName, "", path.Join(aodDir, reachName), false},
		}
	}
	shelves := []shelf{{"io", l.path("io"), ioDir, false}}
	for _, dir := range []string{"output", "handoff"} {
		if slices.Contains(d.spec.volumes(), path.Join(ioDir, dir)) {
			shelves = append(shelves, shelf{dir, l.path("io/" + dir), path.Join(ioDir, dir), false})
		}
	}
	return append(
		shelves,
		shelf{"input", l.input(), inputDir, true},
		shelf{"incoming", l.Incoming(), incomingDir, true},
		shelf{"outgoing", l.Outgoing(), outgoingDir, false},
		shelf{"workspace", l.path("workspace"), workspaceDir, false},
		shelf{"aod", l.path("aod"), aodDir, true},
		shelf{reachName, "", path.Join(aodDir, reachName), false},
	)
}

// tunnelThreads is how many of a container's processes and threads the far end of the tunnel
// uses.
const tunnelThreads = 10

// equip gives the sandbox its volumes. No single file can be mounted: the hosts that a
// bind brings elsewhere are for the engine to write.
func (d *depot) equip(spec *ContainerSpec) {
	for _, s := range d.shelves() {
		spec.Volumes = append(spec.Volumes, VolumeMount{Volume: d.volume(s), Target: s.target, ReadOnly: s.readOnly})
	}
	spec.Limits.PIDs += tunnelThreads
	if spec.Network == "none" {
		spec.ExtraHosts = []string{"host.docker.internal:127.0.0.1"}
	}
}

func (d *depot) volume(s shelf) string { return d.spec.name() + "-" + s.name }

// with makes a container that has all the volumes below depotDir, and removes it afterwards.
func (d *depot) with(ctx context.Context, do func(id string) error) (err error) {
	if d.gone.Load() {
		return fault.New(fault.Unavailable, "the run's files are gone with its sandbox")
	}
	making, cancel := cleanup(ctx) // not broken off: nobody would know the container
	defer cancel()
	id, err := d.engine.Create(making, d.carrier())
	if err != nil {
		return fmt.Errorf("create carrier of files: %w", err)
	}
	defer func() {
		ctx, cancel := cleanup(ctx)
		defer cancel()
		err = errors.Join(err, leftBehind(d.engine.Remove(ctx, id)))
	}()
	return do(id)
}

func (d *depot) carrier() ContainerSpec {
	labels := d.spec.labels()
	labels[LabelAside] = "files"
	spec := ContainerSpec{
		Name:       d.spec.name() + "-files-" + strings.ToLower(rand.Text()[:8]),
		Image:      d.spec.Image.ID,
		Entrypoint: []string{"/never-started"},
		Labels:     labels,
		Network:    "none",
	}
	for _, s := range d.shelves() {
		spec.Volumes = append(spec.Volumes, VolumeMount{Volume: d.volume(s), Target: path.Join(depotDir, s.name)})
	}
	return spec
}
