//go:build linux

package pid1

import (
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"github.com/agent-on-demand/aod/runtime/initreport"
)

// command is what to start.
type command struct {
	argv          []string
	env           []string // beyond our own environment
	stdin, stdout string   // files that it gets as such; "" is ours
	feed          string   // a file that grows, whose content it gets as its stdin; "" is none
	control       string   // the host's socket; "" is none
	park          bool     // the host says there when to start it
	leash         bool     // it ends with the host's connection
	watch         bool     // it is reported what the program tries to write
	find          bool     // it is looked for, and not started
	end           bool     // the host is told where its output ends
}

// usageText is for whoever wrote the container's entrypoint.
const usageText = "usage: init [-stdin FILE | -feed FILE] [-stdout FILE] [-control SOCKET | -park SOCKET | -leash " +

	"SOCKET] [-watch calls] [-find only] [-end lines] -- PROGRAM [ARGS...]"

// parseCommand reads what usageText says. Where it is not ok the control socket may be known
// nevertheless, and the host is told.
func parseCommand(args []string) (c command, ok bool) {
	for len(args) > 1 && args[0] != "--" {
		switch args[0] {
		case "-stdin":
			c.stdin = args[1]
		case "-feed":
			c.feed = args[1]
		case "-stdout":
			c.stdout = args[1]
		case "-control", "-park", "-leash":
			c.control, c.park, c.leash = args[1], args[0] == "-park", args[0] == "-leash"
		case "-watch":
			c.watch = true
		case "-find":
			c.find = true
		case "-end":
			c.end = true
		default:
			return c, false
		}
		args = args[2:]
	}
	if len(args) < 2 {
		return c, false
	}
	c.argv = args[1:]
	return c, true
}

// files returns the program's descriptors 0 to 2. Those that were opened are closed when
// it has started.
func (c command) files() (fds [3]uintptr, err error) {
	fds = [3]uintptr{0, 1, 2}
	for i, file := range []struct {
		path  string
		flags int
	}{{c.stdin, syscall.O_RDONLY}, {c.stdout, syscall.O_WRONLY}} {
		if file.path == "" {
			continue
		}
		fd, err := syscall.Open(file.path, file.flags|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
		if err != nil {
			return fds, err
		}
		fds[i] = uintptr(fd)
	}
	return fds, nil
}

// close closes what files opened, except stdin: the program has its own.
func (command) close(fds [3]uintptr) {
	for _, fd := range fds[1:] {
		if fd > 2 {
			_ = syscall.Close(int(fd))
		}
	}
}

// bytesTaken returns how far the program has read in its stdin, which shares its open file
// with us. It is NotCounted for a stdin that can't seek, such as a pipe, or isn't ours.
func bytesTaken(stdin uintptr) int64 {
	if stdin <= 2 {
		return initreport.NotCounted
	}
	const current = 1 // SEEK_CUR
	n, err := syscall.Seek(int(stdin), 0, current)
	if err != nil {
		return initreport.NotCounted
	}
	return n
}

// startMessage is what a host tells a parked init: what initbin.StartMessage appends.
type startMessage struct {
	stdin, stdout string // "" is what the command says
	args, env     []string
}

// receive waits for the message, and returns how we end without one.
func (m *startMessage) receive(host control) *ending {
	var head [initreport.StartHeadBytes]byte
	if !host.receive(head[:]) {
		return &abandoned
	}
	n := uint32(head[0])<<24 | uint32(head[1])<<16 | uint32(head[2])<<8 | uint32(head[3])
	if n == 0 || n > initreport.MaxStartBytes {
		return badStart("its length")
	}
	body := make([]byte, n)
	if !host.receive(body) {
		return &abandoned
	}
	// Nothing writes to it any more, and a copy would be a megabyte that is never freed.
	wrong := m.parse(unsafe.String(&body[0], len(body))) //nolint:gosec // see above
	if wrong != "" {
		return badStart(wrong)
	}
	return nil
}

func badStart(wrong string) *ending {
	return &ending{code: exitUsage, startError: "the start message is not valid: " + wrong}
}

// parse reads the message behind its length, and returns which part of it is wrong.
func (m *startMessage) parse(body string) (wrong string) {
	texts, ended := strings.CutSuffix(body, "\x00")
	if n := strings.Count(body, "\x00"); !ended || n < 3 || n > initreport.MaxStartTexts {
		return "its number of texts"
	}
	all := strings.Split(texts, "\x00")
	count, err := strconv.Atoi(all[2])
	rest := all[3:]
	if err != nil || count < 0 || count > len(rest) || strconv.Itoa(count) != all[2] {
		return "its number of arguments"
	}
	for _, entry := range rest[count:] {
		if strings.IndexByte(entry, '=') < 1 {
			return "its environment"
		}
	}
	*m = startMessage{stdin: all[0], stdout: all[1], args: rest[:count], env: rest[count:]}
	return ""
}

// complete adds the message to the command.
func (c *command) complete(m startMessage) {
	c.argv, c.env = append(c.argv, m.args...), m.env
	if m.stdin != "" {
		c.stdin = m.stdin
	}
	if m.stdout != "" {
		c.stdout = m.stdout
	}
}

// environ returns our environment with the entries added. An entry replaces one of the same
// name. Setenv would copy every entry, and obey those meant for the program (GODEBUG).
func environ(entries []string) []string {
	all := syscall.Environ()
	if len(entries) == 0 {
		return all
	}
	places := make(map[string]int, len(all)+len(entries))
	for i, entry := range all {
		places[nameOf(entry)] = i
	}
	for _, entry := range entries {
		i, known := places[nameOf(entry)]
		if known {
			all[i] = entry
			continue
		}
		places[nameOf(entry)] = len(all)
		all = append(all, entry)
	}
	return all
}

func nameOf(entry string) string {
	name, _, _ := strings.Cut(entry, "=")
	return name
}

// valueIn returns the value of a name, or "".
func valueIn(env []string, name string) string {
	for _, entry := range env {
		if n, value, _ := strings.Cut(entry, "="); n == name {
			return value
		}
	}
	return ""
}
