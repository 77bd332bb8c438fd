package runtime

import (
	"fmt"
	"path"
	"slices"
	"strconv"
)

// The labels on everything that AOD creates (DESIGN: the sandbox).
const (
	LabelRun     = "aod.run"     // the run's id
	LabelRoot    = "aod.root"    // the id of the run at the root of its tree
	LabelUnit    = "aod.unit"    // the unit's name
	LabelOwner   = "aod.owner"   // whose data directory it belongs to
	LabelAttempt = "aod.attempt" // how often the run was tried, from 1
)

// Spec says what to run and in how tight a box.
type Spec struct {
	Run, Root, Unit, Owner string // for the labels
	Attempt                int    // from 1; 0 is the first as well
	Durable                bool   // the engine keeps the output, so that another process may Adopt the sandbox
	Image                  Image
	Network                string // "none" or "bridge"
	ReadOnly               bool   // the root file system
	Isolation              string // the engine's name of an isolation runtime; "" is its default
	Limits                 Limits
	Env                    []string          // "NAME=value"; never a secret
	Labels                 map[string]string // beside AOD's own
}

// initThreads is what the init takes for itself of a container's processes and threads,
// so that a unit's limit is the unit's.
const initThreads = 10

// container turns the spec into the container of DESIGN's section 4. Whatever user
// the image names is not asked: a sandbox is never root.
func (s Spec) container(layout Layout) ContainerSpec {
	volumes := s.volumes()
	mounts := layout.mounts(s.Network, volumes)
	return ContainerSpec{
		Name:       s.name(),
		Image:      s.Image.ID,
		Entrypoint: []string{initPath, "--"},
		Cmd:        slices.Concat(s.Image.Entrypoint, s.Image.Cmd),
		Env:        append([]string{"HOME=" + workspaceDir}, s.Env...),
		WorkingDir: s.Image.WorkingDir,
		User:       sandboxUser(),
		Hostname:   "sandbox",
		Labels:     s.labels(),
		Mounts:     mounts,
		Tmpfs:      s.tmpfs(volumes, mounts),
		ReadOnly:   s.ReadOnly,
		Network:    s.Network,
		Runtime:    s.Isolation,
		Limits: ContainerLimits{
			MemoryBytes: s.Limits.MemoryBytes,
			CPUs:        s.Limits.CPUs,
			PIDs:        s.Limits.PIDs + initThreads,
			OpenFiles:   s.Limits.OpenFiles,
			FileBytes:   s.Limits.DiskBytes,
			ShmBytes:    s.Limits.TmpBytes,
		},
		LogBytes: s.keptLog(),
	}
}

// name is another for each attempt: the container of the one before may still be there.
func (s Spec) name() string {
	if s.attempt() == 1 {
		return "aod-" + s.Run
	}
	return fmt.Sprintf("aod-%s-%d", s.Run, s.attempt())
}

func (s Spec) attempt() int { return max(s.Attempt, 1) }

func (s Spec) keptLog() int64 {
	if !s.Durable {
		return 0
	}
	return max(s.Limits.LogBytes, 1)
}

// tmpfs gives the sandbox its /tmp, and lies over the volumes that the image declares:
// the engine would put a writable directory of the host there, without any limit.
func (s Spec) tmpfs(volumes []string, mounts []Mount) map[string]string {
	options := fmt.Sprintf("rw,nosuid,nodev,size=%d,mode=1777", s.Limits.TmpBytes)
	tmpfs := map[string]string{"/tmp": options}
	for _, volume := range volumes {
		tmpfs[volume] = options
	}
	for _, m := range mounts { // ours lie there already
		delete(tmpfs, m.Target)
	}
	return tmpfs
}

// volumes are the image's volumes under clean names.
func (s Spec) volumes() []string {
	volumes := make([]string, 0, len(s.Image.Volumes))
	for _, volume := range s.Image.Volumes {
		volumes = append(volumes, path.Clean(volume))
	}
	return volumes
}

func (s Spec) labels() map[string]string {
	labels := map[string]string{
		LabelRun: s.Run, LabelRoot: s.Root, LabelUnit: s.Unit, LabelOwner: s.Owner,
		LabelAttempt: strconv.Itoa(s.attempt()),
	}
	for name, value := range s.Labels {
		if _, ours := labels[name]; !ours {
			labels[name] = value
		}
	}
	return labels
}
