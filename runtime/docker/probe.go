package docker

import (
	"context"
	"slices"

	"github.com/docker/docker/api/types/system"

	"github.com/agent-on-demand/aod/runtime"
)

// Probe asks the engine about itself, in two round trips.
func (e *Engine) Probe(ctx context.Context) (runtime.EngineInfo, error) {
	asked := call{"describe", "itself", ""}
	info, err := e.cli.Info(ctx)
	if err != nil {
		return runtime.EngineInfo{}, e.faultOf(ctx, asked, err)
	}
	version, err := e.cli.ServerVersion(ctx)
	if err != nil {
		return runtime.EngineInfo{}, e.faultOf(ctx, asked, err)
	}
	return runtime.EngineInfo{
		Endpoint:      e.endpoint.String(),
		Local:         !e.Remote(),
		Version:       version.Version,
		APIVersion:    e.cli.ClientVersion(),
		CgroupVersion: info.CgroupVersion,
		CgroupDriver:  info.CgroupDriver,
		StorageDriver: info.Driver,
		OS:            version.Os,
		Arch:          version.Arch, // info has the kernel's word for it
		CPUs:          info.NCPU,
		MemoryBytes:   info.MemTotal,
		Runtimes:      runtimeNames(info),
		RootDir:       info.DockerRootDir,
		Rootless:      slices.Contains(info.SecurityOptions, "name=rootless"),
	}, nil
}

func runtimeNames(info system.Info) []string {
	names := make([]string, 0, len(info.Runtimes))
	for name := range info.Runtimes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
