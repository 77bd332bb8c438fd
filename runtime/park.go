package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/agent-on-demand/aod/runtime/initbin"
)

// Ready is closed when the sandbox's init runs. Of a sandbox that was adopted, or whose
// engine is elsewhere, it never is.
func (s *Sandbox) Ready() <-chan struct{} {
	if s.control == nil {
		return nil
	}
	return s.control.ready
}

// Lives reports whether the container has not ended, as far as the engine has told.
func (s *Sandbox) Lives() bool { return len(s.exit) == 0 }

// Claim gives a sandbox to a run that was not known when it was started. Its directories
// have been moved to where layout says; its time begins now.
func (s *Sandbox) Claim(layout Layout) {
	s.layout, s.startedAt, s.timings = layout, time.Now(), Timings{}
}

// Begin lets the init of a Park spec start the program. A filter that is given here takes the
// place of the spec's stdin and adds its arguments; env adds to the environment.
func (s *Sandbox) Begin(filter *Filter, env []string) error {
	m := initbin.StartMessage{Env: env}
	if filter != nil {
		m.Stdin, m.Args = filter.stdin(), filter.Args
	}
	if s.control == nil {
		return errNoInit
	}
	if err := s.control.begin(m); err != nil {
		return fmt.Errorf("start program of a waiting sandbox: %w", err)
	}
	return nil
}

// OverDisk reports whether a program has written more to the host's disk than it may, as a
// sandbox that is waited for is ended for.
func (l Layout) OverDisk(ctx context.Context, limits Limits) bool {
	return l.overDisk(ctx, limits.DiskBytes) != nil
}

// LinkInputs gives the sandbox the input files below a directory of ours, on the same file
// system. They are read-only for it, so that it may have the very files. Those that it has
// already stay; the error is errTaken for something else in the place of one.
func (l Layout) LinkInputs(from string) error {
	return unwritable(filepath.WalkDir(from, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil || rel == "." {
			return err
		}
		return place(entry, name, filepath.Join(l.input(), rel))
	}))
}

var errTaken = errors.New("something else has the place of an input file")

// place makes a directory, or links a file, where there is nothing or that very thing.
func place(entry fs.DirEntry, name, target string) (err error) {
	if entry.IsDir() {
		err = mkdir(target, 0o755)
	} else {
		err = os.Link(name, target)
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	there, err := os.Lstat(target)
	if err != nil {
		return err
	}
	own, err := entry.Info()
	if err != nil {
		return err
	}
	if os.SameFile(there, own) || entry.IsDir() && there.IsDir() {
		return nil
	}
	return errTaken
}
