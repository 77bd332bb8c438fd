package docker

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/system"
	"golang.org/x/sync/errgroup"

	"github.com/agent-on-demand/aod/runtime"
)

// Probe asks the engine about itself. It makes two requests at once, for each of which the engine
// starts programs to ask for their versions.
func (e *Engine) Probe(ctx context.Context) (runtime.EngineInfo, error) {
	var info system.Info
	var version types.Version
	var asking errgroup.Group
	asking.Go(func() (err error) { info, err = e.cli.Info(ctx); return err })
	asking.Go(func() (err error) { version, err = e.cli.ServerVersion(ctx); return err })
	if err := asking.Wait(); err != nil {
		return runtime.EngineInfo{}, e.faultOf(ctx, call{"describe", "itself", ""}, err)
	}
	security, profile := confinement(info.SecurityOptions)
	e.noSeccomp.Store(!slices.Contains(security, "seccomp"))
	rootless := slices.Contains(security, "rootless")
	return runtime.EngineInfo{
		Endpoint:       e.endpoint.String(),
		Local:          !e.Remote(),
		Name:           engineName(version),
		Version:        version.Version,
		APIVersion:     e.cli.ClientVersion(),
		CgroupVersion:  info.CgroupVersion,
		CgroupDriver:   info.CgroupDriver,
		StorageDriver:  info.Driver,
		OS:             version.Os,
		Arch:           version.Arch, // info has the kernel's word for it
		CPUs:           info.NCPU,
		MemoryBytes:    info.MemTotal,
		Runtimes:       slices.Sorted(maps.Keys(info.Runtimes)),
		RootDir:        info.DockerRootDir,
		Security:       security,
		SeccompProfile: profile,
		SwapLimit:      info.SwapLimit,
		Rootless:       rootless,
		MapsUsers:      rootless || slices.Contains(security, "userns"),
	}, nil
}

// engineName reads what an engine is: the first of its components says so. Docker calls its
// own "Engine", Podman "Podman Engine".
func engineName(version types.Version) string {
	if len(version.Components) == 0 {
		return "Docker"
	}
	name := strings.TrimSpace(strings.TrimSuffix(version.Components[0].Name, "Engine"))
	return cmp.Or(name, "Docker")
}

// confinement reads options such as "name=seccomp,profile=default": the names, sorted, and the
// profile of seccomp. An option is a name alone where the engine is old.
func confinement(options []string) (names []string, profile string) {
	for _, option := range options {
		fields := map[string]string{"name": option}
		for pair := range strings.SplitSeq(option, ",") {
			if key, value, ok := strings.Cut(pair, "="); ok {
				fields[key] = value
			}
		}
		names = append(names, fields["name"])
		if fields["name"] == "seccomp" {
			profile = fields["profile"]
		}
	}
	slices.Sort(names)
	return names, profile
}
