package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"os"
	"path"
	"path/filepath"

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

// PostedResult is the file in which the capsule API keeps a result that the program posted
// instead of writing /io/output.json. The sandbox doesn't see it.
func (l Layout) PostedResult() string { return l.path(postedName) }

const postedName = "posted.json"

// Outgoing is the directory of the files that the program hands to units that it calls. It
// lies beside io and is mounted over it: in io, the program may rename anything.
func (l Layout) Outgoing() string { return l.path("outgoing") }

// Incoming is the directory in which the program finds the files of units that it called.
func (l Layout) Incoming() string { return l.path("incoming") }

// Listen makes the socket of the capsule API, which the sandbox sees in /run/aod. It replaces
// the socket of a dead process. For an engine that runs elsewhere
// it is the listener of a tunnel, which opens as soon as the sandbox runs.
func (l Layout) Listen(ctx context.Context) (net.Listener, error) {
	if l.remote != nil {
		return l.remote.tunnel, nil
	}
	return l.listen(ctx, socketName)
}

// listen makes a socket that the sandbox sees in /run/aod.
func (l Layout) listen(ctx context.Context, name string) (net.Listener, error) {
	dir, err := os.Open(l.path("aod"))
	if err != nil {
		return nil, unwritable(err)
	}
	defer func() { _ = dir.Close() }() // holds no data
	if err := os.Remove(l.path("aod/" + name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, unwritable(err)
	}
	listener, err := listenIn(ctx, dir, name)
	if err != nil {
		return nil, unwritable(err)
	}
	if err := os.Chmod(l.path("aod/"+name), 0o666); err != nil { // everybody in the sandbox may connect
		return nil, errors.Join(unwritable(err), listener.Close())
	}
	return listener, nil
}

const (
	stdinName = "stdin"
	tempDir   = ".tmp"

	projectName = "project"

	// StdinFile is the path in the sandbox of what WriteStdin wrote.
	StdinFile = aodDir + "/" + stdinName
	// Workspace is the directory of the sandbox that its program may fill, and whose files it
	// may execute. The run's end removes it.
	Workspace = workspaceDir
	// ProjectDir is where the sandbox has the project that its program works on.
	ProjectDir = workspaceDir + "/" + projectName
	// TempDir is a directory in it for temporary files that are executed: /tmp has none of those.
	TempDir = workspaceDir + "/" + tempDir
)

// WriteStdin writes what the program gets as its stdin, see Stdio. No program runs yet.
func (l Layout) WriteStdin(text []byte) error {
	return unwritable(safefs.Replace(l.path("aod/"+stdinName), text, safefs.ReplaceOptions{Mode: 0o644}))
}

// Project is the directory of this host that the sandbox has as ProjectDir, unless the spec has
// a Project of its own. Its content is the program's.
func (l Layout) Project() string { return cmp.Or(l.Kept, l.path("workspace/"+projectName)) }

// OverDisk reports whether a program has written more to the host's disk than it may. Wait
// checks that itself; this is for a sandbox that nobody waits for.
func (l Layout) OverDisk(ctx context.Context, limits Limits) bool {
	return (&meter{layout: l, limit: limits.DiskBytes}).over(ctx) != nil
}

// LinkInputs links the input files below a directory of ours, on the same file system, into
// /io/input. The sandbox can't write to them. Files that are linked already stay. Where
// something else has the name of one, the error is errOccupied.
func (l Layout) LinkInputs(from string) error {
	return unwritable(filepath.WalkDir(from, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil || rel == "." {
			return err
		}
		return linkEntry(entry, name, filepath.Join(l.input(), rel))
	}))
}

// RenewInput makes the files below a directory of ours, on the same file system, all that there
// is in /io/input. A program may run meanwhile.
func (l Layout) RenewInput(from string) error {
	if err := (resetDir{"io", "input", nil}).clear(l.Dir); err != nil {
		return err
	}
	return l.LinkInputs(from)
}

// OwnProject makes what the program can write to a project of its own for the kernel's quotas, where the file system
// keeps these. What is written for it from then on is in it, too, and nothing can be moved or linked there from
// elsewhere. So /io/input is left out: its files are ours, and others have them as well.
func (l Layout) OwnProject() {
	trees := []string{
		"io", "io/output", "io/handoff", "io/handoff/outgoing", "io/handoff/incoming", "outgoing",
		"workspace",
	}
	for i := range trees {
		trees[i] = l.path(trees[i])
	}
	ownProject(l.Dir, trees...)
}

// Reset makes the layout of a run that is over as new, for another run in the same container.
// It keeps only the directories that the container has mounted. The program goes on: all work
// is done below directories that it can't replace. Where anything is unexpected there is an
// error, and the container must not serve another run.
func (l Layout) Reset(ctx context.Context) error {
	if l.remote != nil {
		return errors.New("the run's files are elsewhere")
	}
	if over := (&meter{layout: l, limit: math.MaxInt64}).over(ctx); over != nil { // and opens closed directories
		return over
	}
	for _, dir := range []resetDir{
		{"io", "input", nil},
		{"io", "handoff/incoming", nil},
		{"io", "handoff/outgoing", nil},
		{"io", "handoff", []string{"incoming", "outgoing"}},
		{"io", ".", []string{"input", "handoff"}},
		{"incoming", ".", nil},
		{"outgoing", ".", nil},
		{"workspace", ".", nil},
		{".", ".", []string{"io", "aod", "incoming", "outgoing", "workspace"}},
	} {
		if err := dir.clear(l.Dir); err != nil {
			return fmt.Errorf("renew: %w", err)
		}
	}
	return l.resetOutput()
}

// resetOutput makes /io/output, which the former run's output was moved from.
func (l Layout) resetOutput() error {
	root, err := os.OpenRoot(l.path("io"))
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // holds no data
	if err := root.Mkdir("output", 0o700); err != nil {
		return err
	}
	return root.Chmod("output", 0o777)
}

// Workdir is that of the run.
func (l Layout) Workdir() Workdir { return Workdir{l.path("workspace")} }
