package runtime

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime/tunnel"
)

// volumes are the directories of one attempt at an engine that doesn't see this host's files:
// each directory is a volume there. Containers that mount the volumes and never start, the
// carriers, fill and read them. On this host the layout's directories hold the files before
// they are sent, and after they were fetched. nil, for an engine that sees this host's files, has nothing
// to fill, to fetch and to remove.
type volumes struct {
	engine  RemoteEngine
	layout  Layout // without remote
	spec    Spec
	tunnel  *tunnel.Listener
	sent    sentFiles
	removed atomic.Bool // a carrier would make the volumes anew now
}

// carrierDir is the directory of a carrier in which the volumes are mounted. No image has it.
const carrierDir = "/.aod-files"

// At returns the layout for a run of the spec on the engine. For an engine that sees this
// host's files it is l.
func (l Layout) At(engine Containers, spec Spec) Layout {
	remote, ok := remoteOf(engine)
	if !ok {
		return l
	}
	l.remote = &volumes{engine: remote, layout: l, spec: spec, tunnel: tunnel.New(tunnel.Options{})}
	return l
}

// FileTransfer returns the transfer of handoff files. It is nil for an engine that sees this host's
// files: Outgoing and Incoming are the very directories that the program sees then.
func (l Layout) FileTransfer() *FileTransfer {
	if l.remote == nil {
		return nil
	}
	return &FileTransfer{l.remote}
}

// volume is one of them.
type volume struct {
	name     string // of its directory in carrierDir
	source   string // the directory on this host; "": none
	target   string // where the sandbox has it
	readOnly bool
}

// all lists the volumes of the attempt. A directory of /io that the image declares as a
// volume needs one of its own, as it does with mounts.
func (v *volumes) all() []volume {
	l := v.layout
	if v.spec.Filter != nil {
		return []volume{
			{"input", l.input(), inputDir, true},
			{"aod", l.path("aod"), aodDir, true},
			{writableName, "", path.Join(aodDir, writableName), false},
		}
	}
	list := []volume{{"io", l.path("io"), ioDir, false}}
	for _, dir := range []string{"output", "handoff"} {
		if slices.Contains(v.spec.imageVolumes(), path.Join(ioDir, dir)) {
			list = append(list, volume{dir, l.path("io/" + dir), path.Join(ioDir, dir), false})
		}
	}
	return append(
		list,
		volume{"input", l.input(), inputDir, true},
		volume{"incoming", l.Incoming(), incomingDir, true},
		volume{"outgoing", l.Outgoing(), outgoingDir, false},
		volume{"workspace", l.path("workspace"), workspaceDir, false},
		volume{"aod", l.path("aod"), aodDir, true},
		volume{writableName, "", path.Join(aodDir, writableName), false},
	)
}

// tunnelThreads is how many of a container's processes and threads the far end of the tunnel
// uses.
const tunnelThreads = 10

// mountIn gives the sandbox its volumes. A volume can't be a single file: the engine writes
// the hosts file, which is a mount where the engine sees this host's files.
func (v *volumes) mountIn(spec *ContainerSpec) {
	for _, one := range v.all() {
		spec.Volumes = append(spec.Volumes,
			VolumeMount{Volume: v.nameOf(one), Target: one.target, ReadOnly: one.readOnly})
	}
	spec.Limits.PIDs += tunnelThreads
	if spec.Network == "none" {
		spec.ExtraHosts = []string{"host.docker.internal:127.0.0.1"}
	}
}

// nameOf returns the volume's name at the engine.
func (v *volumes) nameOf(one volume) string { return v.spec.name() + "-" + one.name }

// withCarrier makes a carrier, calls do with its id, and removes it.
func (v *volumes) withCarrier(ctx context.Context, do func(id string) error) (err error) {
	if v.removed.Load() {
		return fault.New(fault.Unavailable, "the run's files are gone with its sandbox")
	}
	making, cancel := cleanup(ctx) // ctx doesn't end it: nobody would know the container's id
	defer cancel()
	id, err := v.engine.Create(making, v.carrier())
	if err != nil {
		return fmt.Errorf("create carrier of files: %w", err)
	}
	defer func() {
		ctx, cancel := cleanup(ctx)
		defer cancel()
		err = errors.Join(err, leftBehind(v.engine.Remove(ctx, id)))
	}()
	return do(id)
}

// carrier returns a container that has all the volumes below carrierDir.
func (v *volumes) carrier() ContainerSpec {
	labels := v.spec.labels()
	labels[LabelPurpose] = "files"
	spec := ContainerSpec{
		Name:       v.spec.name() + "-files-" + strings.ToLower(rand.Text()[:8]),
		Image:      v.spec.Image.ID,
		Entrypoint: []string{"/never-started"},
		Labels:     labels,
		Network:    "none",
	}
	for _, one := range v.all() {
		spec.Volumes = append(spec.Volumes, VolumeMount{Volume: v.nameOf(one), Target: path.Join(carrierDir, one.name)})
	}
	return spec
}

// remove removes the engine's copy of the run's directories. The container is removed by then.
func (v *volumes) remove(ctx context.Context) error {
	if v == nil {
		return nil
	}
	ctx, cancel := cleanup(ctx)
	defer cancel()
	v.removed.Store(true)
	return removeAttempt(ctx, v.engine, v.spec)
}

// keepTunnel keeps the tunnel to the container open until ctx ends.
func (v *volumes) keepTunnel(ctx context.Context, id string) {
	v.tunnel.KeepOpen(ctx, func(ctx context.Context) (io.ReadWriteCloser, error) {
		return v.engine.Exec(ctx, id, []string{tunnel.Program})
	})
}

const (
	// usageInterval is the time between two questions about the disk.
	usageInterval = 2 * time.Second
	// maxUnmeasured is how long the far end may fail to tell the run's disk usage. The
	// program has the same user id and could stop the far end.
	maxUnmeasured = 30 * time.Second
)

// watchDisk is sandboxDisk.watch for the engine's disk.
func (v *volumes) watchDisk(ctx context.Context, limit int64, end context.CancelCauseFunc) {
	ticker := time.NewTicker(usageInterval)
	defer ticker.Stop()
	measured := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		usage, err := v.tunnel.Usage(ctx)
		if err == nil {
			measured = time.Now()
		}
		if over := overUsage(usage, limit, time.Since(measured)); over != nil {
			end(over)
			return
		}
	}
}

// overUsage returns the limit that the run went over; nil if none.
func overUsage(usage tunnel.Usage, limit int64, unmeasured time.Duration) *LimitError {
	switch {
	case usage.Bytes > limit:
		return overBytes(limit)
	case usage.Entries > watchEntries:
		return overEntries()
	case unmeasured > maxUnmeasured:
		return &LimitError{
			Limit: "output", Message: fmt.Sprintf("for %s nobody could tell how much it writes to /io and /workspace",
				maxUnmeasured),
			Hint: "does it stop the processes beside it, or use up its memory or its processes?",
		}
	}
	return nil
}
