package runtime

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/runtime/initreport"
)

// The labels on everything that AOD creates (DESIGN: the sandbox).
const (
	LabelRun     = "aod.run"     // the run's id
	LabelRoot    = "aod.root"    // the id of the run at the root of its tree
	LabelUnit    = "aod.unit"    // the unit's name
	LabelOwner   = "aod.owner"   // whose data directory it belongs to
	LabelAttempt = "aod.attempt" // how often the run was tried, from 1
	// LabelPurpose is on containers beside the run's own: carriers of its files, and those
	// that ask its program for its card.
	LabelPurpose = "aod.aside"
)

// ImageLabels returns labels for a new image that take away those of its Dockerfile which
// would make a container of it look like one of a run's.
func ImageLabels() map[string]string {
	return map[string]string{LabelRun: "", LabelRoot: "", LabelOwner: "", LabelAttempt: "", LabelPurpose: ""}
}

// Spec says what to run and within which limits.
type Spec struct {
	Run, Root, Unit, Owner string // for the labels
	Attempt                int    // from 1; 0 means 1
	Durable                bool   // the engine keeps the output, so that another process may Adopt the sandbox
	Image                  Image
	UID                    int    // of its user, where AOD is root; 0 is the one that all share
	Network                string // "none" or "bridge"
	ReadOnly               bool   // the root file system
	Isolation              string // the engine's name of an isolation runtime; "" is its default
	Limits                 Limits
	// "NAME=value"; of a name that stands twice the last counts; never a secret
	Env    []string
	Labels map[string]string // beside AOD's own
	Filter *Filter           // nil: the program works on /io
	Stdio  *Stdio            // nil: stdin is empty, and stdout goes to the log
	// instead of the image's ENTRYPOINT and CMD; nil: those. With ModeParked the first alone counts at the start
	Program []string
	Dir     string   // absolute: where the program starts; "": as the image says
	Account bool     // /etc/passwd and /etc/group know the sandbox's user; not with an engine elsewhere
	Mode    Mode     // says what the others may be: see check
	Watch   bool     // the report says what the program tried to write; slows it down
	Console *Console // with ModeStdio and ModeConsole: streams of a program other than the image's
	// a directory of this host that the program may read as ProjectDir; "": none but what it may change
	Project string
	Patch   []Mount // files of this host over those of the image; not with an engine elsewhere
	Session string  // whose home the sandbox has: the sandboxes of one have one user; "" is none
	Disks   *Disks  // whose room the run's writing takes; nil: nobody minds
	Purpose string  // of a container beside the run's own, such as "card"; "" is the run's own
}

// Stdio makes files of the run a program's stdin and stdout. They outlive this process.
type Stdio struct {
	Stdin string // absolute, in the sandbox: see InputFile and StdinFile; "" isn't an input at all
	// Output is a file that the program leaves as its output beside what it prints, relative to
	// /workspace; "": none.
	Output string
	// FetchBytes bounds what comes back of the program's stdout, and of Output, from an engine
	// elsewhere; 0 is Limits.ResultBytes.
	FetchBytes int64
}

// Filter makes a sandbox for a program that has Stdio, and can write nowhere else but to its
// tmpfs.
type Filter struct {
	Args  []string // replace the image's CMD where it has an ENTRYPOINT, else follow it
	Model *Mount   // a file or directory of this host that it reads; nil: none
}

// initThreads is how many of a container's processes and threads the init uses. They are
// added to the unit's limit.
const initThreads = 14

// watchThreads is how many more it uses to watch the program.
const watchThreads = 2

// feedThreads is how many more it uses to copy a stdin that grows.
const feedThreads = 2

// HomePath is where a program finds the home of its session.
const HomePath = "/session"

// container turns the spec into the container of DESIGN's section 4. The image's user is
// ignored: a sandbox is never root.
func (s Spec) container(layout Layout) ContainerSpec {
	volumes := s.imageVolumes()
	spec := ContainerSpec{
		Name:       s.name(),
		Image:      s.Image.ID,
		Entrypoint: s.entrypoint(layout),
		Cmd:        s.command(),
		Env:        lastOfEach(append([]string{"HOME=" + s.home(layout)}, s.Env...)),
		WorkingDir: cmp.Or(s.Dir, s.Image.WorkingDir),
		User:       sandboxUser(s.UID),
		Hostname:   "sandbox",
		Labels:     s.labels(),
		ReadOnly:   s.ReadOnly,
		Network:    s.Network,
		Runtime:    s.Isolation,
		Limits: ContainerLimits{
			MemoryBytes: s.Limits.MemoryBytes,
			CPUs:        s.Limits.CPUs,
			PIDs:        s.Limits.PIDs + s.initThreads(),
			OpenFiles:   s.Limits.OpenFiles,
			FileBytes:   s.Limits.DiskBytes,
			ShmBytes:    s.Limits.TmpBytes,
			LayerBytes:  s.layerBytes(),
		},
		LogBytes:  s.keptLog(),
		Stdin:     s.Console != nil,
		Terminal:  s.Console != nil && s.Console.Terminal,
		Ephemeral: s.Mode == ModeStdio,
	}
	binds{layout, s}.into(&spec, volumes)
	spec.Tmpfs = s.tmpfs(volumes, spec)
	return spec
}

// layerBytes bounds what goes to the root file system; 0 where nothing does.
func (s Spec) layerBytes() int64 {
	if s.ReadOnly {
		return 0
	}
	return s.Limits.DiskBytes
}

func (s Spec) initThreads() int64 {
	threads := int64(initThreads)
	if s.Watch {
		threads += watchThreads
	}
	if s.Mode == ModeStdio {
		threads++
	}
	if s.Mode == ModeSession {
		threads += feedThreads
	}
	return threads
}

// lastOfEach returns variables by their order, of each name the last one. Programs disagree
// about a name that stands twice.
func lastOfEach(env []string) []string {
	at := map[string]int{}
	var each []string
	for _, variable := range env {
		name, _, _ := strings.Cut(variable, "=")
		if i, known := at[name]; known {
			each[i] = variable
			continue
		}
		at[name] = len(each)
		each = append(each, variable)
	}
	return each
}

// entrypoint is the init with its options: its connection to this process, which is told of the end
// and of that of the log, and the program's stdin and stdout.
func (s Spec) entrypoint(layout Layout) []string {
	entrypoint := []string{initPath}
	switch {
	case s.Mode == ModeParked:
		entrypoint = append(entrypoint, "-park", initreport.ControlPath)
	case s.Mode == ModeStdio:
		entrypoint = append(entrypoint, "-leash", initreport.ControlPath)
	case s.Mode.tells() && layout.remote == nil:
		entrypoint = append(entrypoint, "-control", initreport.ControlPath)
	}
	if s.Mode.tells() && s.Console == nil && layout.remote == nil {
		entrypoint = append(entrypoint, "-end", "lines")
	}
	if s.Watch {
		entrypoint = append(entrypoint, "-watch", "calls")
	}
	if s.Mode == ModeProbe {
		entrypoint = append(entrypoint, "-find", "only")
	}
	if s.Stdio != nil && s.Console == nil {
		entrypoint = append(entrypoint, "-stdin", s.Stdio.stdin(), "-stdout",
			path.Join(layout.writableDir(), stdoutName))
	}
	if s.Mode == ModeSession {
		entrypoint = append(entrypoint, feedOptions()...)
	}
	return append(entrypoint, "--")
}

// stdin is the file that the program gets as its stdin, in the sandbox.
func (s Stdio) stdin() string { return cmp.Or(s.Stdin, "/dev/null") }

// InputFile returns the path in the sandbox of a file in /io/input.
func InputFile(name string) string { return path.Join(inputDir, name) }

// command is the spec's program, or else the image's. As with `docker run`, arguments take the place of CMD
// where there is an ENTRYPOINT.
func (s Spec) command() []string {
	switch {
	case s.Console != nil:
		return s.Console.Command
	case s.Program != nil && s.Mode == ModeParked:
		return s.Program[:1]
	case s.Program != nil:
		return s.Program
	case s.Filter == nil:
		return slices.Concat(s.Image.Entrypoint, s.Image.Cmd)
	}
	args := s.Filter.Args
	if s.Mode == ModeParked {
		args = nil // they come with the start
	}
	if len(s.Image.Entrypoint) > 0 {
		return slices.Concat(s.Image.Entrypoint, args)
	}
	return slices.Concat(s.Image.Cmd, args)
}

func (s Spec) home(layout Layout) string {
	switch {
	case layout.Home != "":
		return HomePath
	case s.Filter != nil:
		return "/tmp"
	}
	return workspaceDir
}

// name differs for each attempt: the earlier attempt's container may still be there.
func (s Spec) name() string {
	name := "aod-" + s.Run
	if s.attempt() > 1 {
		name += "-" + strconv.Itoa(s.attempt())
	}
	if s.Purpose != "" {
		name += "-" + s.Purpose
	}
	return name
}

func (s Spec) attempt() int { return max(s.Attempt, 1) }

func (s Spec) keptLog() int64 {
	if !s.Durable {
		return 0
	}
	return max(s.Limits.LogBytes, 1)
}

// tmpfs returns the sandbox's /tmp, and a tmpfs over each volume that the image declares: the
// engine would mount a writable directory of the host there, without any limit.
func (s Spec) tmpfs(volumes []string, spec ContainerSpec) map[string]string {
	options := fmt.Sprintf("rw,nosuid,nodev,size=%d,mode=1777", s.Limits.TmpBytes)
	tmpfs := map[string]string{"/tmp": options}
	for _, volume := range volumes {
		tmpfs[volume] = options
	}
	for _, m := range spec.Mounts { // we mount these
		delete(tmpfs, m.Target)
	}
	for _, v := range spec.Volumes {
		delete(tmpfs, v.Target)
	}
	return tmpfs
}

// imageVolumes are the paths that the image declares as volumes, cleaned.
func (s Spec) imageVolumes() []string {
	volumes := make([]string, 0, len(s.Image.Volumes))
	for _, volume := range s.Image.Volumes {
		volumes = append(volumes, path.Clean(volume))
	}
	return volumes
}

// labels returns every label of AOD's, also the empty ones: a container has the labels of its
// image where it has none of its own.
func (s Spec) labels() map[string]string {
	labels := map[string]string{
		LabelRun: s.Run, LabelRoot: s.Root, LabelUnit: s.Unit, LabelOwner: s.Owner,
		LabelAttempt: strconv.Itoa(s.attempt()), LabelPurpose: s.Purpose,
	}
	for name, value := range s.Labels {
		if _, ours := labels[name]; !ours {
			labels[name] = value
		}
	}
	return labels
}
