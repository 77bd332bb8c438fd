package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/runtime/initbin"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

// Where things stand inside the container (DESIGN: /io, what a capsule sees).
const (
	ioDir        = "/io"
	inputDir     = "/io/input"
	incomingDir  = "/io/handoff/incoming"
	outgoingDir  = "/io/handoff/outgoing"
	workspaceDir = "/workspace"
	aodDir       = "/run/aod"
	initPath     = initreport.InitPath
	reportPath   = "/run/aod/report"
)

// Layout is the directory of one run on this host. Untrusted code writes below it as soon as
// the container runs. The directory itself is closed to other users of the host.
type Layout struct {
	Dir    string // absolute
	Input  string // absolute: what the run sees as /io/input; "" is below Dir
	Output string // absolute: where /io/output lies after its publication; "" is below Dir
	Home   string // absolute: what the program has as its HOME at HomePath, see HomeDir; "" is none
	Kept   string // absolute: the project that it has as ProjectDir and that outlives the sandbox; "" is none

	remote      *volumes // nil where the engine sees this host's files; see At
	programRuns bool     // the run is over and the program goes on; see TakeOutput
}

// NewLayout makes the run's directories below dir, which must exist. The init is
// taken from initFile, an installed init binary (see initbin.Installer).
func NewLayout(dir, initFile string) (Layout, error) { return NewLayoutWith(dir, initFile, "") }

// NewLayoutWith is NewLayout for a run whose input files lie in a directory of their
// own, which exists and which the sandbox's user can read; "" is none.
func NewLayoutWith(dir, initFile, input string) (Layout, error) {
	l := Layout{Dir: dir, Input: input}
	return l, unwritable(l.make(initFile))
}

// OpenLayout returns the layout of directories that NewLayoutWith made before, maybe in
// another process.
func OpenLayout(dir, input string) Layout { return Layout{Dir: dir, Input: input} }

func (l Layout) make(initFile string) error {
	if err := os.Chmod(l.Dir, 0o700); err != nil {
		return err
	}
	for _, dir := range []string{
		"io", "io/input", "io/output", "io/handoff", "io/handoff/outgoing",
		"io/handoff/incoming", "outgoing", "incoming", "workspace",
	} {
		if err := mkdir(l.path(dir), 0o777); err != nil {
			return err
		}
	}
	if err := mkdir(l.path("aod"), 0o755); err != nil {
		return err
	}
	if err := l.placeInit(initFile); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	if err := l.makeReport(); err != nil {
		return err
	}
	return writeFile(l.path("aod/hosts"), []byte(hosts), 0o644)
}

// hosts is the /etc/hosts of a sandbox without a network. The name of the engine's host is
// the sandbox itself there, where the capsule API listens.
const hosts = "127.0.0.1 localhost sandbox host.docker.internal\n::1 localhost ip6-localhost ip6-loopback\n"

// placeInit links the init binary to where /run/aod is bound, or copies it where the
// two lie on different file systems.
func (l Layout) placeInit(initFile string) error {
	if os.Link(initFile, l.path("aod/init")) == nil {
		return nil
	}
	in, err := os.Open(initFile)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // read only
	root, err := os.OpenRoot(l.path("aod"))
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // holds no data
	_, err = safefs.Copy(root, "init", in, 0o555)
	return err
}

// WriteInput writes /io/input.json. A program may run already: nothing that it left there is
// followed or written to.
func (l Layout) WriteInput(payload []byte) error {
	return unwritable(safefs.Replace(l.path("io/input.json"), payload, safefs.ReplaceOptions{Mode: 0o666}))
}

// MakePipe makes a pipe in /io/input, which a filter can have as its stdin. It doesn't work with a
// remote engine.
func (l Layout) MakePipe(name string) error {
	path := filepath.Join(l.input(), filepath.FromSlash(name))
	if err := makePipe(path); err != nil {
		return unwritable(fmt.Errorf("pipe: %w", err))
	}
	return unwritable(os.Chmod(path, 0o644)) // whatever the umask is
}

func (l Layout) makeReport() error {
	return errors.Join(writeFile(l.path("aod/report"), nil, 0o666), writeFile(l.path("aod/"+stdoutName), nil, 0o666))
}

// resetReport removes the report of an earlier attempt. The next attempt's init would refuse
// to run otherwise.
func (l Layout) resetReport() error {
	if err := os.Remove(l.path("aod/report")); err != nil {
		return unwritable(err)
	}
	return unwritable(l.makeReport())
}

// Report reads the init's report of the run's usage. It is advisory: the program has the same
// user id and can write there as well. The errors are those of initbin.ParseReport, and of
// reading the file.
func (l Layout) Report() (initreport.Report, error) {
	raw, err := readRegular(l.path("aod"), "report", initreport.MaxBytes)
	if err != nil {
		return initreport.Report{}, err
	}
	return initbin.ParseReport(raw)
}

func (l Layout) input() string { return cmp.Or(l.Input, l.path("io/input")) }

func (l Layout) output() string { return cmp.Or(l.Output, l.path("io/output")) }

func (l Layout) path(rel string) string { return filepath.Join(l.Dir, filepath.FromSlash(rel)) }

// equip gives a container the run's directories.
func (l Layout) equip(container *ContainerSpec, spec Spec, volumes []string) {
	switch {
	case l.remote != nil:
		l.remote.mountIn(container)
	case spec.Filter != nil:
		container.Mounts = l.filterMounts(spec)
	default:
		container.Mounts = l.mounts(spec, volumes)
	}
	container.Mounts = append(append(container.Mounts, l.sessionMounts(spec)...), spec.Patch...)
}

// sessionMounts are the binds of what a session has beside those of every sandbox.
func (l Layout) sessionMounts(spec Spec) (mounts []Mount) {
	if spec.Feed {
		mounts = append(mounts, Mount{Source: l.path("aod/" + stdoutName), Target: path.Join(aodDir, stdoutName)})
	}
	if l.Home != "" {
		mounts = append(mounts, Mount{Source: l.Home, Target: HomePath})
	}
	if l.Kept != "" {
		mounts = append(mounts, Mount{Source: l.Kept, Target: ProjectDir})
	}
	return mounts
}

// filterMounts are the binds of a filter's sandbox: it reads its input and writes its stdout.
func (l Layout) filterMounts(spec Spec) []Mount {
	mounts := []Mount{
		{Source: l.input(), Target: inputDir, ReadOnly: true},
		{Source: l.path("aod"), Target: aodDir, ReadOnly: true},
		{Source: l.path("aod/report"), Target: reportPath},
		{Source: l.path("aod/" + stdoutName), Target: path.Join(aodDir, stdoutName)},
	}
	if spec.Filter.Model != nil {
		mounts = append(mounts, *spec.Filter.Model)
	}
	if spec.Network == "none" {
		mounts = append(mounts, Mount{Source: l.path("aod/hosts"), Target: "/etc/hosts", ReadOnly: true})
	}
	return mounts
}

// stdoutName is the file that a program with Stdio has as its stdout, in writableDir.
const stdoutName = "stdout"

// writableDir is the sandbox's directory of the files of ours that it may write.
func (l Layout) writableDir() string {
	if l.remote != nil {
		return path.Join(aodDir, writableName)
	}
	return aodDir
}

// OpenStdout opens the file to which a program with Stdio writes its stdout. Anything but a regular file
// is an error.
func (l Layout) OpenStdout() (*os.File, error) {
	root, err := os.OpenRoot(l.path("aod"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // read only
	f, _, err := safefs.OpenRegular(root, stdoutName)
	return f, err
}

// mounts are the binds of a sandbox. The read-only ones lie over the writable ones, so that
// their order matters. A directory of /io that the image declares as a volume gets a bind of
// its own: otherwise the engine would cover it with a volume that nobody collects. With our
// own hosts file the engine sets up no network for "none", which halves the time of a start.
func (l Layout) mounts(spec Spec, volumes []string) []Mount {
	mounts := []Mount{{Source: l.path("io"), Target: ioDir}}
	for _, dir := range []string{"/io/output", "/io/handoff"} {
		if slices.Contains(volumes, dir) {
			mounts = append(mounts, Mount{Source: l.path(dir), Target: dir})
		}
	}
	mounts = append(
		mounts,
		Mount{Source: l.input(), Target: inputDir, ReadOnly: true},
		Mount{Source: l.Incoming(), Target: incomingDir, ReadOnly: true},
		Mount{Source: l.Outgoing(), Target: outgoingDir},
		Mount{Source: l.path("workspace"), Target: workspaceDir},
		Mount{Source: l.path("aod"), Target: aodDir, ReadOnly: true},
		Mount{Source: l.path("aod/report"), Target: reportPath},
	)
	if spec.Stdio != nil {
		mounts = append(mounts, Mount{Source: l.path("aod/" + stdoutName), Target: path.Join(aodDir, stdoutName)})
	}
	if spec.Project != "" {
		mounts = append(mounts, Mount{Source: spec.Project, Target: ProjectDir, ReadOnly: true})
	}
	if spec.Account {
		mounts = append(mounts, l.accountMounts()...)
	}
	if spec.Network == "none" {
		mounts = append(mounts, Mount{Source: l.path("aod/hosts"), Target: "/etc/hosts", ReadOnly: true})
	}
	return mounts
}

// PostedResult is the file in which the capsule API keeps a result that the program posted
// instead of writing /io/output.json. The sandbox doesn't see it.
func (l Layout) PostedResult() string { return l.path(postedName) }

const postedName = "posted.json"
