package docker

import (
	_ "embed" // the profile
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/runtime"
)

// containerConfig decides everything about a container that the spec does not: no
// capabilities, no new privileges, no swap, no log files without an end, no core dumps,
// no health checks of the image and no init.
func containerConfig(spec runtime.ContainerSpec) (container.Config, container.HostConfig) {
	config := container.Config{
		Image:           spec.Image,
		Entrypoint:      spec.Entrypoint,
		Cmd:             spec.Cmd,
		Env:             spec.Env,
		WorkingDir:      spec.WorkingDir,
		User:            spec.User,
		Hostname:        spec.Hostname,
		Labels:          spec.Labels,
		AttachStdout:    true,
		AttachStderr:    true,
		AttachStdin:     spec.Stdin,
		OpenStdin:       spec.Stdin,
		StdinOnce:       spec.Stdin,
		Tty:             spec.Terminal,
		StopSignal:      "SIGTERM",
		Healthcheck:     &container.HealthConfig{Test: []string{"NONE"}},
		NetworkDisabled: bareNetwork(spec),
	}
	noInit := false
	host := container.HostConfig{
		NetworkMode:    container.NetworkMode(spec.Network),
		ExtraHosts:     spec.ExtraHosts,
		Runtime:        spec.Runtime,
		ReadonlyRootfs: spec.ReadOnly,
		Tmpfs:          spec.Tmpfs,
		Mounts:         append(mounts(spec.Mounts), volumes(spec.Volumes, spec.Labels)...),
		ShmSize:        spec.Limits.ShmBytes,
		IpcMode:        container.IPCModePrivate,
		CapDrop:        []string{"ALL"},
		SecurityOpt:    securityOptions(true),
		LogConfig:      logConfig(spec.LogBytes),
		Init:           &noInit,
		AutoRemove:     spec.Ephemeral,
		StorageOpt:     storageOptions(spec.Limits),
		Resources:      resources(spec.Limits),
	}
	return config, host
}

// storageOptions ask for a quota of the container's layer. Most engines have none to give:
// overlay2 needs XFS with project quotas.
func storageOptions(limits runtime.ContainerLimits) map[string]string {
	if limits.LayerBytes <= 0 {
		return nil
	}
	return map[string]string{"size": strconv.FormatInt(limits.LayerBytes, 10)}
}

// takesNoQuota reports whether the engine refused a container for its quota.
func takesNoQuota(err error) bool {
	if err == nil {
		return false
	}
	text := strings.ToLower(err.Error())
	return strings.Contains(text, "storage-opt") || strings.Contains(text, "storage opt") ||
		strings.Contains(text, "quota")
}

// logConfig keeps the container's output in two files that take turns: at least one of
// them is full of the latest output before anything is lost. Each line becomes an object
// with its time, and some characters six, so that the files need more room than the
// output. Only very short lines need more than that.
func logConfig(logBytes int64) container.LogConfig {
	if logBytes <= 0 {
		return container.LogConfig{Type: "none"}
	}
	const least, most = 2 << 20, 1 << 40
	size := least + 3*min(logBytes, most)
	return container.LogConfig{Type: "json-file", Config: map[string]string{
		"max-size": strconv.FormatInt(size, 10),
		"max-file": "2",
	}}
}

// bareNetwork reports that the container needs no networking of the engine's: the
// kernel gives it a network namespace with lo and nothing else, which halves the time
// of a start. But /etc/hosts and ExtraHosts are part of the engine's networking, so
// the spec must bring a hosts file of its own; and only the default runtime is known
// to bring lo up by itself.
func bareNetwork(spec runtime.ContainerSpec) bool {
	ownHosts := slices.ContainsFunc(spec.Mounts, func(m runtime.Mount) bool { return m.Target == "/etc/hosts" })
	return spec.Network == "none" && ownHosts && len(spec.ExtraHosts) == 0 && spec.Runtime == ""
}

// mounts uses the API's Mounts, not Binds: a missing source is an error there, and
// an empty directory made by the engine with the other. Propagation is left to the engine:
// it is private, but for sources below the engine's own directory, such as those of
// volumes, where it insists on rslave.
func mounts(from []runtime.Mount) []mount.Mount {
	var to []mount.Mount
	for _, m := range from {
		to = append(to, mount.Mount{
			Type:     mount.TypeBind,
			Source:   m.Source,
			Target:   m.Target,
			ReadOnly: m.ReadOnly,
		})
	}
	return to
}

// volumes are mounted as they are: what the image has at their place isn't copied into
// them. The engine makes the ones that it doesn't have.
func volumes(from []runtime.VolumeMount, labels map[string]string) []mount.Mount {
	var to []mount.Mount
	for _, v := range from {
		to = append(to, mount.Mount{
			Type:          mount.TypeVolume,
			Source:        v.Volume,
			Target:        v.Target,
			ReadOnly:      v.ReadOnly,
			VolumeOptions: &mount.VolumeOptions{NoCopy: true, Labels: labels},
		})
	}
	return to
}

func resources(limits runtime.ContainerLimits) container.Resources {
	r := container.Resources{
		Memory:     limits.MemoryBytes,
		MemorySwap: limits.MemoryBytes, // both together, so there is no swap
		NanoCPUs:   int64(math.Round(limits.CPUs * 1e9)),
		Ulimits:    []*container.Ulimit{ulimit("core", 0)},
	}
	if limits.PIDs > 0 {
		r.PidsLimit = &limits.PIDs
	}
	if limits.OpenFiles > 0 {
		r.Ulimits = append(r.Ulimits, ulimit("nofile", limits.OpenFiles))
	}
	if limits.FileBytes > 0 {
		r.Ulimits = append(r.Ulimits, ulimit("fsize", limits.FileBytes))
	}
	return r
}

func ulimit(name string, value int64) *container.Ulimit {
	return &container.Ulimit{Name: name, Soft: value, Hard: value}
}

var cpuRefusal = lazyregexp.New(`(?i)range of CPUs is from .* there are only (\d{1,6}) CPUs`)

// cpusOffered reads from a refusal how many nano-CPUs the engine has.
func cpusOffered(err error) (nanoCPUs int64, refused bool) {
	if err == nil {
		return 0, false
	}
	m := cpuRefusal().FindStringSubmatch(err.Error())
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	return n * 1e9, err == nil && n > 0
}

// seccompProfile says which system calls a sandbox may use: those of today's engines for a
// container without capabilities, but for deniedCalls and deniedRequests. Older engines allow more
// by themselves, such as io_uring. seccomp_test.go makes the file (UPDATE_GOLDEN=1) and holds it.
//
//go:embed seccomp.json
var seccompProfile string

// securityOptions are the options of every sandbox. Without a profile of ours the engine takes
// its own.
func securityOptions(profile bool) []string {
	options := []string{"no-new-privileges"}
	if profile {
		options = append(options, "seccomp="+seccompProfile)
	}
	return options
}

// takesNoProfile reports whether a container was refused for its profile: Podman takes the
// name of a file on its own machine.
func takesNoProfile(err error) bool {
	return err != nil && strings.Contains(err.Error(), "seccomp profile")
}
