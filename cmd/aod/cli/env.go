// Package cli is what every command of aod gets, and what many of them do alike: asking a server, running units on this
// machine, printing lists. It knows no command. It must not know commands.
//
// Its Go API may change with every release: see docs/stability.md.
package cli

import (
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/term"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/orchestrator/kind/container"
)

// Env is what a command gets of the call of the program: its streams, its global flags, and what
// the program puts together for it.
type Env struct {
	In       io.Reader
	Out, Err *ui.Output

	Data      string   // --data
	Units     []string // --units
	Quiet     bool     // --quiet
	Server    string   // --server
	TokenFile string   // --token-file
	CA        string   // --ca
	Pin       string   // --pin

	Version string // of the program

	Patches *container.Patches // of --watch; else nil

	// Local calls do with a runner of units on this machine.
	Local func(opts LocalOptions, do func(*Local) error) error
}

// NotKept is the fault of something that should have been kept in the temporary directory for a while.
func NotKept(err error, what string) error {
	return fault.Wrap(fault.Unavailable, err, "%s can't be kept in %s", what, os.TempDir()).
		WithHint("is its disk full? TMPDIR names another directory")
}

// Home is the server's part of this command's data directory.
func (env *Env) Home() string { return filepath.Join(filepath.Clean(env.Data), "server") }

// Bundled is the directory, in that of data, of the units that come with AOD.
func Bundled(data string) string { return filepath.Join(data, "bundled") }

// DefaultData is the default data directory of a user (XDG Base Directory).
func DefaultData() string {
	if dir := os.Getenv("AOD_DATA"); dir != "" {
		return dir
	}
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "aod")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return filepath.Join(os.TempDir(), "aod-data")
	}
	return filepath.Join(home, ".local", "share", "aod")
}

// Note prints a remark, unless --quiet.
func (env *Env) Note(format string, args ...any) {
	if !env.Quiet {
		env.Err.Line(format, args...)
	}
}

// StdinIsTerminal reports whether a person would have to type the input.
func (env *Env) StdinIsTerminal() bool {
	file, ok := env.In.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Beside does something beside its caller, who stops it and waits for its end.
func Beside(cancel func(), do func()) (stop func()) {
	var done sync.WaitGroup
	done.Go(do)
	return func() { cancel(); done.Wait() }
}
