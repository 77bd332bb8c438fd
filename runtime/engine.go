package runtime

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// ErrUnreachable says that the engine was not reached, or that the connection to it broke or
// stayed silent before it had answered. Whether it did what it was asked for isn't known: it is
// found by its labels. What runs there goes on.
var ErrUnreachable = errors.New("the engine was not reached")

// Silent returns the ErrUnreachable fault of an engine that is there and has not answered for so
// long. It is the cause of a context that bounds a call.
func Silent(waited time.Duration) error {
	return fault.Wrap(fault.Unavailable, ErrUnreachable, "the engine has not answered for %s", waited).
		WithHint("it may be overloaded, or hang: `aod doctor` shows whether it answers; if it goes on like that, " +
			"restart it: `sudo systemctl restart docker`")
}

// Engine is what AOD needs of a container engine. Functions ask for the role that
// they use, not for the whole.
//
// Every method returns a *fault.Error: NotFound for a missing image or container,
// Conflict for a name that is taken, Unavailable with ErrUnreachable when the engine doesn't answer,
// Unsupported for what it can't do, Build for a failed build. The context bounds the call alone, never the life of
// what the call made.
type Engine interface {
	Images
	Builder
	Containers
	Prober
}

// Prober asks the engine about itself.
type Prober interface {
	Probe(ctx context.Context) (EngineInfo, error)
}

// EngineInfo is what an engine says of itself.
type EngineInfo struct {
	Endpoint      string // how it was reached, e.g. "unix:///var/run/docker.sock"
	Local         bool   // whether it sees this process's files (a unix socket)
	Name          string // what it is: "Docker", "Podman", or what it calls itself
	Version       string // of the engine
	APIVersion    string // negotiated
	CgroupVersion string // "1" or "2"
	CgroupDriver  string
	StorageDriver string
	OS, Arch      string   // of its containers, Go's words ("linux", "amd64")
	CPUs          int      //
	MemoryBytes   int64    //
	Runtimes      []string // isolation runtimes by name, sorted
	RootDir       string   // where it stores images, on its own host
	// Security has the names of what the engine confines containers with, sorted: "seccomp",
	// "apparmor", "selinux", "userns", "rootless". SeccompProfile is that of containers which bring none.
	Security       []string
	SeccompProfile string
	SwapLimit      bool // whether the engine's kernel bounds swap
	Rootless       bool
	// MapsUsers says that users of a container are others of the host, and that few numbers of
	// them exist there. It is always so with Rootless.
	MapsUsers bool
	// Node is its id in a Swarm; "": it is in none.
	Node string
}

// HasSeccomp reports whether the engine can bound the system calls of sandboxes.
func (i EngineInfo) HasSeccomp() bool { return slices.Contains(i.Security, "seccomp") }

// Images looks at the engine's images.
type Images interface {
	// Image returns an image by reference or id, or a NotFound fault.
	Image(ctx context.Context, ref string) (Image, error)
	// Pull fetches an image from its registry.
	Pull(ctx context.Context, ref string) error
	// RemoveImage removes a reference; one that isn't there is no error.
	RemoveImage(ctx context.Context, ref string) error
	// ImagesByLabel lists the images that carry all the labels; an empty value
	// matches any. Only ID, Tags, Labels and SizeBytes are set.
	ImagesByLabel(ctx context.Context, labels map[string]string) ([]Image, error)
}

// ImageCarrier brings images from one engine to another.
type ImageCarrier interface {
	// Save returns an image by reference or id, as Load takes it. The caller closes the stream. The error is a NotFound
	// fault also for a reference by digest, which is a registry's.
	Save(ctx context.Context, ref string) (io.ReadCloser, error)
	// Load takes an image that Save has written. The error is a Conflict fault if it isn't of that reference, or of
	// more than that; an error of the stream is returned as it is. Nothing of the image is there then.
	Load(ctx context.Context, ref string, tar io.Reader) error
	// TagImage gives an image another reference.
	TagImage(ctx context.Context, ref, as string) error
}

// Image is what an image says about how to start it.
type Image struct {
	ID         string // "sha256:…"
	Tags       []string
	Entrypoint []string
	Cmd        []string
	Env        []string
	WorkingDir string
	Volumes    []string // paths that the image declares as volumes, sorted
	OS, Arch   string
	Labels     map[string]string
	OnBuild    []string // instructions that the build of an image upon this one begins with
	SizeBytes  int64
}

// Builder makes images.
type Builder interface {
	// Build sends the context and returns the image's id. Progress is reported in
	// order, from one goroutine, before Build returns. On failure the Build fault's
	// message names the failing step and ends with the last lines of its output.
	Build(ctx context.Context, spec BuildSpec, progress func(BuildEvent)) (imageID string, err error)
}

// BuildSpec says what to build.
type BuildSpec struct {
	Tags   []string
	Labels map[string]string
	// WriteContext writes the build context as a tar, already filtered by
	// .dockerignore. It may be called again when a second builder has to be tried.
	WriteContext func(io.Writer) error
	Dockerfile   string // within the context; "" is "Dockerfile"
	NoCache      bool
	Limits       BuildLimits
}

// BuildLimits bound what a build may reach and take. Zero fields leave the engine's own.
type BuildLimits struct {
	Network string // of RUN steps: "none", or ""
	// MemoryBytes and CPUs bound each container of the build. Only the classic builder keeps
	// them: BuildKit ignores what a request says of them.
	MemoryBytes int64
	CPUs        float64
	// Classic asks for the classic builder even where BuildKit would answer.
	Classic bool
}

// ErrBuildNetwork says that a step failed for want of the network that its build didn't have.
var ErrBuildNetwork = errors.New("the build has no network")

// ErrNoBase says that the engine lacks an image that a build begins upon, and that no registry gives it.
var ErrNoBase = errors.New("the base image is missing")

// BuildEvent is a piece of progress.
type BuildEvent struct {
	Step  string // identifies the step within this build
	Name  string // e.g. "[2/4] RUN pip install"; may be empty on log events
	State StepState
	Log   string // one line of output, without its end; only with StepLog
}

// StepState is how far a step is.
type StepState string

// The states of a step.
const (
	StepStarted StepState = "started"
	StepLog     StepState = "log"
	StepDone    StepState = "done"
	StepCached  StepState = "cached"
	StepFailed  StepState = "failed"
)

// Containers makes, watches and removes containers.
type Containers interface {
	// Create makes a container from the spec and starts nothing.
	Create(ctx context.Context, spec ContainerSpec) (id string, err error)
	// Attach returns the output streams of a created container. To miss nothing
	// it is called before Start. The caller closes the streams.
	Attach(ctx context.Context, id string) (*Streams, error)
	// NextExit subscribes to the container's next exit and returns once the
	// subscription stands, so it is called before Start. The channel gets exactly
	// one value unless ctx ends first; its buffer holds that value.
	NextExit(ctx context.Context, id string) (<-chan Exit, error)
	// Logs returns what a container has written since its start, as far as the
	// engine keeps it (ContainerSpec.LogBytes), and follows it to its end; of one
	// that has ended it returns all. It is called after Start, and the caller closes
	// the streams. A container whose output isn't kept is an Unsupported fault.
	Logs(ctx context.Context, id string) (*Streams, error)
	// Start starts a created container. One that is running isn't an error.
	Start(ctx context.Context, id string) error
	// Stop sends SIGTERM, and SIGKILL after the grace time (whole seconds).
	// A container that isn't running isn't an error.
	Stop(ctx context.Context, id string, grace time.Duration) error
	// Kill sends SIGKILL. A container that isn't running isn't an error.
	Kill(ctx context.Context, id string) error
	Inspect(ctx context.Context, id string) (ContainerState, error)
	// CPUTime returns how much processor time a running container has used. An engine may
	// take a second for the answer.
	CPUTime(ctx context.Context, id string) (time.Duration, error)
	// Remove kills and removes a container with its anonymous volumes. One that
	// is gone, or going, isn't an error.
	Remove(ctx context.Context, id string) error
	// ContainersByLabel lists containers in any state that carry all the labels.
	// An empty value matches any.
	ContainersByLabel(ctx context.Context, labels map[string]string) ([]ContainerRef, error)
}

// ContainerRef names a container that was found by its labels.
type ContainerRef struct {
	ID     string
	Labels map[string]string
	State  string // as ContainerState.Status
}

// Streams are a container's outputs, taken apart. Both must be read to their end,
// or the container stalls. Close ends them early.
type Streams struct {
	Stdin  io.WriteCloser // nil, but for Terminals.AttachInput; its Close is the end of the input alone
	Stdout io.Reader
	Stderr io.Reader
	Close  func() error
}

// Exit is the end of a container. Err is set when the engine could not tell.
type Exit struct {
	Code int
	Err  error
}

// The words of ContainerState.Status that we act on.
const (
	StatusCreated = "created" // never started
	StatusRunning = "running"
	StatusExited  = "exited"
)

// ContainerState is where a container is in its life, and what is left to read after
// its end.
type ContainerState struct {
	Status     string // StatusCreated, …, or another word of the engine's
	Running    bool   // also while paused
	PID        int    // of its first process, as the engine's host counts; 0: none
	ExitCode   int
	OOMKilled  bool
	Error      string // the engine's own words, when it could not start the program
	StartedAt  time.Time
	FinishedAt time.Time
}

// ContainerSpec is everything that is decided about a container. There are no
// settings beside it, and a test of every adapter sets each field and finds it.
type ContainerSpec struct {
	Name       string // unique on the engine
	Image      string // reference or id
	Entrypoint []string
	Cmd        []string
	Env        []string // "NAME=value"; never a secret
	WorkingDir string
	User       string // "uid:gid"
	Hostname   string
	Labels     map[string]string
	Mounts     []Mount
	Volumes    []VolumeMount     // in this order, over Mounts; each gets Labels where it isn't there yet
	Tmpfs      map[string]string // path -> mount options
	ReadOnly   bool              // the root file system
	Network    string            // "none", "bridge", …; "none" starts faster with a mount on /etc/hosts
	ExtraHosts []string          // "name:address"
	Runtime    string            // isolation runtime; "" is the engine's default
	Limits     ContainerLimits
	Stdin      bool  // the program has one, which ends with whoever is attached to it
	Terminal   bool  // stdin, stdout and stderr are one terminal
	LogBytes   int64 // of output that the engine keeps for Logs, or about that; 0: none
	Ephemeral  bool  // the engine removes it as soon as it has ended
}

// ContainerLimits bound one container. Zero means no limit.
type ContainerLimits struct {
	MemoryBytes int64 // memory and swap together: no swap is given
	CPUs        float64
	PIDs        int64
	OpenFiles   int64
	FileBytes   int64 // the size of any one file written
	ShmBytes    int64
	LayerBytes  int64 // what it writes to its root file system, where the engine can hold that; see Layers
}

// Mount binds a file or directory of this host, which must exist.
type Mount struct {
	Source   string // absolute, as this process sees it
	Target   string // absolute, in the container
	ReadOnly bool
}

// VolumeMount mounts a named volume of the engine, which is made where there is none.
type VolumeMount struct {
	Volume   string // its name, unique on the engine
	Target   string // absolute, in the container
	ReadOnly bool
}
