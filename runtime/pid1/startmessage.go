//go:build linux

package pid1

import (
	"strconv"
	"strings"
	"unsafe"

	"github.com/agent-on-demand/aod/runtime/initreport"
)

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
