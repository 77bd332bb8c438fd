//go:build linux

package pid1

import (
	"errors"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unsafe"
)

// ending is how the main program ended, or why it never began.
type ending struct {
	code       int // our own exit code
	signal     int
	startError string
	terminated bool // somebody had asked for it
	abandoned  bool // nobody had asked for a start

	stdinTaken    int64
	processesLeft int64 // when the main program had ended
	watcher       *watcher
	logEnd        string // what the last line of both streams says; "": there is none
}

// start runs a command in its own process group and our directory. One that is only looked for
// ends well where it is found. The watcher is nil where
// nothing is watched.
func start(c command) (pid int, stdin uintptr, w *watcher, failed *ending) {
	env := environ(c.env)
	dirs := valueIn(env, "PATH")
	path, err := lookup(c.argv[0], dirs)
	if err != nil {
		return 0, 0, nil, notFound(c.argv[0], dirs, err)
	}
	if c.find {
		return 0, 0, nil, &ending{}
	}
	files, err := c.files()
	if err != nil {
		return 0, 0, nil, &ending{code: exitUsage, startError: "its input or output: " + err.Error()}
	}
	var fed feeder
	if c.feed != "" {
		if fed, files[0], err = openFeed(c.feed); err != nil {
			return 0, 0, nil, &ending{code: exitUsage, startError: "its input: " + err.Error()}
		}
	}
	restore := offerToOOMKiller()
	hide()
	pid, w, err = c.fork(path, &syscall.ProcAttr{
		Env:   env,
		Files: files[:],
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	restore()
	c.close(files)
	if err != nil {
		return 0, 0, nil, notStarted(c.argv[0], path, err)
	}
	giveTerminal(pid)
	if c.feed != "" {
		_ = syscall.Close(int(files[0])) // the program has its own
		go fed.run()
		return pid, 0, w, nil
	}
	return pid, files[0], w, nil
}

func (c command) fork(path string, attr *syscall.ProcAttr) (pid int, w *watcher, err error) {
	if !c.watch {
		pid, err = syscall.ForkExec(path, c.argv, attr)
		return pid, nil, err
	}
	w = &watcher{}
	pid, watched, err := w.fork(path, c.argv, attr)
	if !watched {
		return pid, nil, err
	}
	return pid, w, err
}

// notFound says of a name that was searched for where that was.
func notFound(program, dirs string, err error) *ending {
	end := notStarted(program, "", err)
	if errors.Is(err, errNotFound) && program != "" && !strings.Contains(program, "/") {
		end.startError += " in the PATH " + oneLine(orDefault(dirs))
	}
	return end
}

func notStarted(program, path string, err error) *ending {
	end := &ending{code: 126, startError: oneLine(program) + ": " + err.Error()}
	switch {
	case errors.Is(err, errNotFound):
		end.code = 127
	case errors.Is(err, syscall.ENOENT) && endsInCR(path):
		end.code = 127
		end.startError += " (its first line ends in CR and LF, as Windows writes it: save it with LF)"
	case errors.Is(err, syscall.ENOENT):
		end.code = 127
		end.startError += " (its interpreter or its loader is missing)"
	case errors.Is(err, syscall.EACCES):
		end.startError += " (it, or its interpreter, is not executable: RUN chmod +x in the Dockerfile)"
	case errors.Is(err, syscall.ENOEXEC):
		end.startError += " (built for another architecture, or a script without a #! line)"
	}
	return end
}

// endsInCR reports whether a script names its interpreter in a line that Windows ended.
func endsInCR(path string) bool {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer func() { _ = syscall.Close(fd) }() // read only
	var head [256]byte                       // as much as the kernel looks at
	n, _ := syscall.Read(fd, head[:])
	line, _, whole := strings.Cut(string(head[:max(n, 0)]), "\n")
	return whole && strings.HasPrefix(line, "#!") && strings.HasSuffix(line, "\r")
}

// oneLine makes a name fit for a message: short, and without control characters.
func oneLine(name string) string {
	const limit = 200
	if len(name) > limit {
		name = name[:limit] + "..."
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, name)
}

// oomScore is the part of a thousand of the memory limit that the program counts as
// using beyond what it does: between it and us the kernel kills the program.
const oomScore = "500"

// offerToOOMKiller raises our own score for the program to inherit; restore takes us
// back to where we were, which a user may always do. The program has the score from its
// first moment this way, without code between fork and exec; we have it for a moment
// longer. The file stays open in between because hide takes the right to open it again.
func offerToOOMKiller() (restore func()) {
	const file = "/proc/self/oom_score_adj"
	var buf [16]byte
	before := readSmall(file, buf[:])
	fd, err := syscall.Open(file, syscall.O_WRONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return func() {}
	}
	_, _ = syscall.Write(fd, []byte(oomScore)) // good to have, no more
	return func() {
		_, _ = syscall.Write(fd, before)
		_ = syscall.Close(fd)
	}
}

// hide keeps the program, which has the same user, from tracing this process and from
// its memory and open files under /proc/1. Exec undoes it for the program itself.
func hide() {
	const prSetDumpable = 4
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetDumpable, 0, 0) // a second wall, so it may fail
}

// giveTerminal puts the program's group into the foreground where stdin is a terminal.
// Should the program have read from it too early it was stopped, hence the SIGCONT.
func giveTerminal(pgid int) {
	id := int32(pgid) //nolint:gosec // Linux has no process ids beyond 1<<22
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, 0, syscall.TIOCSPGRP,
		uintptr(unsafe.Pointer(&id))) //nolint:gosec // how ioctl takes it
	if errno == 0 {
		_ = syscall.Kill(-pgid, syscall.SIGCONT) // it may have ended already
	}
}

// wait reaps everything that ends until the main program has.
func wait(main int) ending {
	var status syscall.WaitStatus
	for {
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err != nil && err != syscall.EINTR:
			return ending{code: exitUsage, startError: "wait: " + err.Error()}
		case pid != main:
		case status.Signaled(): //nolint:misspell // the name is the standard library's
			n := int(status.Signal())
			return ending{code: 128 + n, signal: n}
		case status.Exited():
			return ending{code: status.ExitStatus()}
		}
	}
}

// killRest kills every other process of the container and reaps it, so that the
// counters are final and nobody is left to write the report beside us. What doesn't
// die in time (it may have come by "docker exec" as another user) dies with us, uncounted.
func killRest() (killed int64) {
	const patience, nap = time.Second, 200 * time.Microsecond
	if syscall.Getpid() != 1 { // unreachable, and a disaster if it weren't
		return 0
	}
	_ = syscall.Kill(-1, syscall.SIGKILL) // nobody left is fine
	pause := syscall.NsecToTimespec(int64(nap))
	var status syscall.WaitStatus
	for waited := time.Duration(0); waited < patience; {
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case err != nil && err != syscall.EINTR:
			return killed
		case pid == 0:
			_ = syscall.Nanosleep(&pause, nil) // an early end is fine
			waited += nap
		//nolint:misspell // the name is the standard library's
		case pid > 0 && status.Signaled() && status.Signal() == syscall.SIGKILL:
			killed++
		}
	}
	return killed
}

// errNotFound is a program that no directory of the path has.
var errNotFound = errors.New("not found")

// defaultPath is what execvp searches when there is no PATH.
const defaultPath = "/bin:/usr/bin"

// lookup finds the program as execvp(3) does: a name with a slash is a path, another is
// searched for in the directories of the path, where an empty one is the working
// directory. One that exists but can't be executed is EACCES unless a later directory
// has a better one.
func lookup(program, path string) (string, error) {
	if program == "" {
		return "", errNotFound
	}
	if strings.Contains(program, "/") {
		return program, executable(program)
	}
	result := errNotFound
	for dir := range strings.SplitSeq(orDefault(path), ":") {
		if dir == "" {
			dir = "."
		}
		file := dir + "/" + program
		err := executable(file)
		if err == nil {
			return file, nil
		}
		if errors.Is(err, syscall.EACCES) {
			result = err
		}
	}
	return "", result
}

func orDefault(path string) string {
	if path == "" {
		return defaultPath
	}
	return path
}

// executable returns nil, errNotFound or EACCES.
func executable(file string) error {
	const mayExecute = 1 // X_OK
	var st syscall.Stat_t
	switch err := syscall.Stat(file, &st); {
	case err == syscall.EACCES:
		return syscall.EACCES
	case err != nil:
		return errNotFound
	case st.Mode&syscall.S_IFMT != syscall.S_IFREG:
		return syscall.EACCES
	case syscall.Access(file, mayExecute) != nil:
		return syscall.EACCES
	}
	return nil
}
