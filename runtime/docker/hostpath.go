package docker

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/agent-on-demand/aod/api/fault"
)

// hostPaths says where the files of this process lie on the engine's host.
type hostPaths struct {
	same  bool // where we see them: we are in no container of the engine's
	parts []part
}

// part is a directory of our container that isn't the container's own.
type part struct {
	inside string // absolute and clean
	host   string // where the engine has it; "" is nowhere, as with a tmpfs
}

// is reports that the container found by that id may be ours: it wasn't found by its name,
// and what is mounted in it is mounted here.
func (s self) is(id string, found container.InspectResponse) bool {
	if found.ContainerJSONBase == nil || !strings.HasPrefix(found.ID, id) {
		return false
	}
	return !slices.ContainsFunc(found.Mounts, func(m container.MountPoint) bool {
		return !slices.Contains(s.points, resolved(m.Destination))
	})
}

// pathsOf puts together what the engine tells of our container with what is mounted here.
// Of a mount that the engine doesn't list it can't tell where it has it, as when it told
// of another container whose network is ours: that one is taken to be the same there.
func pathsOf(found container.InspectResponse, points []string) *hostPaths {
	var paths hostPaths
	for _, m := range found.Mounts {
		p := part{inside: resolved(m.Destination)}
		if m.Source != "" && (m.Type == mount.TypeBind || m.Type == mount.TypeVolume) {
			p.host = path.Join(m.Source, subpath(found.HostConfig, p.inside))
		}
		paths.parts = append(paths.parts, p)
	}
	if found.HostConfig != nil {
		for inside := range found.HostConfig.Tmpfs {
			paths.parts = append(paths.parts, part{inside: resolved(inside)})
		}
	}
	for _, point := range points { // after those that the engine lists, which count
		paths.parts = append(paths.parts, part{inside: point, host: point})
	}
	return &paths
}

// subpath returns which directory of a volume is mounted, where it isn't all of it: the
// mount's Source doesn't tell.
func subpath(host *container.HostConfig, inside string) string {
	if host == nil {
		return ""
	}
	for _, m := range host.Mounts {
		if m.VolumeOptions != nil && resolved(m.Target) == inside {
			return m.VolumeOptions.Subpath
		}
	}
	return ""
}

// translate returns where the host has what we know by that name. What lies in our
// container's own file system, or in its memory, the engine can't mount.
func (p *hostPaths) translate(name string) (string, error) {
	name = resolved(name)
	var best part
	for _, candidate := range p.parts {
		if within(name, candidate.inside) && len(candidate.inside) > len(best.inside) {
			best = candidate
		}
	}
	if best.host == "" {
		return "", fault.New(fault.Unsupported,
			"the data directory must be on a volume or a bind mount: it is in this container alone, where the engine "+
				"can't mount it from").
			WithHint(`start the container with -v aod-data:/data and AOD_DATA=/data; in a compose file: volumes: ` +
				`["aod-data:/data"]`)
	}
	return path.Join(best.host, strings.TrimPrefix(name, best.inside)), nil
}

// resolved returns a path as the kernel lists it among the mounts, without links, as far
// as it is there: of what is missing the engine has more to say.
func resolved(name string) string {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		return real
	}
	return path.Clean(name)
}

// within reports whether a path is a directory or below it. Both are clean, and nothing is
// within /, where our container's own files begin.
func within(name, dir string) bool {
	rest, ok := strings.CutPrefix(name, dir)
	return ok && (rest == "" || rest[0] == '/')
}
