// Package doctor is `aod doctor`: whether this machine is ready. It must not know the root command.
//
// Its Go API may change with every release: see docs/stability.md.
package doctor

import (
	"context"
	"fmt"
	"os"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/internal/images"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker"
	"github.com/agent-on-demand/aod/runtime/initbin"
	"github.com/agent-on-demand/aod/runtime/quota"
)

const (
	// oldestAPI is the oldest tested engine API: that of Debian 12's engine.
	oldestAPI = "1.41"
	// lowSpace is the free space below which the doctor warns, noSpace that below which it
	// reports a problem.
	lowSpace = 5 << 30
	noSpace  = 1 << 30
)

// health is the state of one item.
type health string

const (
	fine   health = "ok"
	worry  health = "warn"
	broken health = "fail"
)

// checkup is the doctor's finding on one item, with the remedy.
type checkup struct {
	Name   string `json:"name"`
	Health health `json:"health"`
	Found  string `json:"found"`
	Fix    string `json:"fix,omitempty"`
}

// Command is `aod doctor`.
func Command(env *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "See whether this machine is ready, and how to fix what isn't",
		Args:  cli.Exactly(0, "nothing"),
		RunE:  func(cmd *cobra.Command, _ []string) error { return examine(cmd.Context(), env, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	return cmd
}

func examine(ctx context.Context, env *cli.Env, asJSON bool) error {
	checkups := append(examineEngine(ctx, env.Data), examineData(env.Data))
	checkups = append(checkups, examineServer(env)...)
	checkups = append(checkups, examineWorker(ctx, env.Data)...)
	failed := slices.ContainsFunc(checkups, func(c checkup) bool { return c.Health == broken })
	return cli.Judge(env, checkups, failed, asJSON, func() { showCheckups(env, checkups) })
}

func showCheckups(env *cli.Env, checkups []checkup) {
	colours := map[health]string{fine: ui.Green, worry: ui.Yellow, broken: ui.Red}
	for _, c := range checkups {
		env.Out.Line("%s  %-16s %s", env.Out.Style(colours[c.Health], fmt.Sprintf("%-4s", c.Health)), c.Name, c.Found)
		if c.Fix != "" {
			env.Out.Line("      %-16s %s", "", env.Out.Style(ui.Dim, c.Fix))
		}
	}
}

func examineEngine(ctx context.Context, data string) []checkup {
	engine, err := docker.New(docker.Options{})
	if err != nil {
		return []checkup{sick("engine", err), examineInit(goruntime.GOARCH)}
	}
	defer func() { _ = engine.Close() }() // nothing is lost
	info, err := probeEngine(ctx, engine)
	if err != nil {
		return []checkup{sick("engine", err), examineInit(goruntime.GOARCH)}
	}
	return []checkup{
		{Name: "engine", Health: fine, Found: info.Name + " " + info.Version + " at " + info.Endpoint},
		examinePlace(info),
		examineAPI(info),
		{Name: "cgroups", Health: fine, Found: "version " + info.CgroupVersion + ", driver " + info.CgroupDriver},
		examineConfinement(info),
		examineSwap(info),
		examineStorage(info),
		examineWatch(info, data),
		{Name: "runtimes", Health: fine, Found: strings.Join(info.Runtimes, ", ")},
		examineBase(ctx, engine),
		examineBuilds(ctx, engine),
		examineSpace("engine's disk", info),
		examineInit(info.Arch),
	}
}

// doctorPatience bounds the wait for an engine that may hang.
const doctorPatience = 10 * time.Second

func probeEngine(ctx context.Context, engine runtime.Prober) (runtime.EngineInfo, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, doctorPatience, runtime.Silent(doctorPatience))
	defer cancel()
	return engine.Probe(ctx)
}

func sick(name string, err error) checkup {
	public := fault.Public(err)
	return checkup{Name: name, Health: broken, Found: public.Msg, Fix: public.Hint}
}

func examinePlace(info runtime.EngineInfo) checkup {
	place := "sees this machine's files"
	if !info.Local {
		place = "elsewhere, files are carried there"
	}
	return checkup{
		Name: "place", Health: fine,
		Found: fmt.Sprintf("%s; %s/%s, %d CPUs, %s memory", place, info.OS, info.Arch, info.CPUs,
			ui.Bytes(info.MemoryBytes)),
	}
}

func examineAPI(info runtime.EngineInfo) checkup {
	c := checkup{Name: "API version", Health: fine, Found: info.APIVersion}
	if olderVersion(info.APIVersion, oldestAPI) {
		c.Health, c.Fix = worry, "older than "+oldestAPI+", the oldest that is tested: update the engine"
	}
	return c
}

// olderVersion compares two versions of the form "1.41".
func olderVersion(version, than string) bool {
	major, minor := versionParts(version)
	thanMajor, thanMinor := versionParts(than)
	return major < thanMajor || major == thanMajor && minor < thanMinor
}

func versionParts(version string) (major, minor int) {
	left, right, _ := strings.Cut(version, ".")
	major, _ = strconv.Atoi(left)  // a text that isn't a number is 0, the oldest version
	minor, _ = strconv.Atoi(right) // likewise
	return major, minor
}

func examineStorage(info runtime.EngineInfo) checkup {
	c := checkup{Name: "storage driver", Health: fine, Found: info.StorageDriver}
	switch info.StorageDriver {
	case "vfs", "devicemapper", "aufs":
		c.Health, c.Fix = worry, "slow or out of date: overlay2 is what Docker recommends"
	}
	return c
}

// examineConfinement tells what holds programs beside namespaces. A profile that the engine calls
// unconfined is that of containers without one of their own; sandboxes bring theirs.
func examineConfinement(info runtime.EngineInfo) checkup {
	c := checkup{Name: "confinement", Health: fine, Found: "none"}
	if len(info.Security) > 0 {
		c.Found = strings.Join(info.Security, ", ")
	}
	if !info.HasSeccomp() {
		c.Health, c.Found = worry, c.Found+"; no seccomp: programs may use every system call"
		c.Fix = "use an engine and a kernel with seccomp; without it `aod serve` starts only with allow_unconfined"
	} else if info.SeccompProfile == "unconfined" {
		c.Health, c.Found = worry, c.Found+"; builds have no seccomp profile, sandboxes have AOD's"
		c.Fix = "take seccomp-profile: unconfined out of the engine's daemon.json"
	}
	return c
}

func examineSwap(info runtime.EngineInfo) checkup {
	if info.SwapLimit {
		return checkup{Name: "swap", Health: fine, Found: "counts as memory, and sandboxes get none"}
	}
	return checkup{
		Name: "swap", Health: worry,
		Found: "has no limit: a sandbox that is at its memory limit may fill the machine's swap",
		Fix:   "boot the engine's kernel with swapaccount=1, or without swap",
	}
}

// examineWatch tells how the limit of what a run writes is kept.
func examineWatch(info runtime.EngineInfo, data string) checkup {
	c := checkup{Name: "disk limits", Health: fine}
	if !info.Local {
		c.Found = "by asking every two seconds; deleted files that are open aren't seen on another machine"
		return c
	}
	c.Found = "by looking twice a second; deleted files that are open count where this process sees the engine's " +
		"processes"
	if err := quota.Check(data); err != nil {
		c.Found += "; " + err.Error()
		c.Fix = "for limits that the kernel keeps, run `aod serve` as root with its data on ext4 (tune2fs -O " +
			"quota,project -Q prjquota, mount -o prjquota) or XFS (mount -o prjquota)"
		return c
	}
	c.Found = "by project quotas of the kernel, and " + c.Found
	return c
}

func examineBase(ctx context.Context, engine runtime.Images) checkup {
	image, err := engine.Image(ctx, images.BaseTag())
	switch {
	case err == nil:
		return checkup{Name: "base image", Health: fine, Found: images.BaseTag() + ", " + ui.Bytes(image.SizeBytes)}
	case fault.Is(err, fault.NotFound):
		return checkup{
			Name: "base image", Health: worry, Found: "not built yet",
			Fix: "the first run that needs it builds it; `aod build base` does it now",
		}
	}
	return sick("base image", err)
}

// examineSpace works only for a local engine whose directory is readable.
func examineSpace(name string, info runtime.EngineInfo) checkup {
	if !info.Local {
		return checkup{Name: name, Health: fine, Found: "not known: the engine is elsewhere"}
	}
	return examineDisk(name, info.RootDir)
}

func examineData(path string) checkup {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return checkup{
			Name: "data directory", Health: broken, Found: err.Error(),
			Fix: "name another one with --data DIR or AOD_DATA",
		}
	}
	return examineDisk("data directory", path)
}

func examineDisk(name, path string) checkup {
	free, err := runtime.FreeBytes(path)
	if err != nil {
		return checkup{Name: name, Health: worry, Found: "can't be looked at: " + err.Error()}
	}
	c := checkup{Name: name, Health: fine, Found: fmt.Sprintf("%s, %s free", path, ui.Bytes(free))}
	switch {
	case free < noSpace:
		c.Health, c.Fix = broken, "make room: runs and images need it"
	case free < lowSpace:
		c.Health, c.Fix = worry, "make room soon: images take a lot"
	}
	return c
}

// examineInit looks for what the sandboxes of the engine begin with.
func examineInit(arch string) checkup {
	self, err := initbin.Check(arch)
	switch {
	case err != nil:
		return sick("sandbox init", err)
	case self:
		return checkup{Name: "sandbox init", Health: fine, Found: "aod itself, for engines on linux/" + arch +
			" alone; `make build` and releases have a small one"}
	}
	return checkup{Name: "sandbox init", Health: fine, Found: "built in"}
}
