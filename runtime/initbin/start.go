package initbin

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

// StartMessage says what a parked init (aod-init -park) completes its command with. It is
// sent once, after initreport.Ready came.
type StartMessage struct {
	Stdin  string   // a file in the container; "" is what init was started with
	Stdout string   // as well
	Args   []string // behind the program's own
	Env    []string // NAME=value; an entry takes the place of earlier ones of its name
}

// Append appends the message as init reads it: a length in four bytes, big-endian, and as
// many bytes of texts that each end with NUL: Stdin, Stdout, the decimal number of Args,
// these, and Env. The error is Input for a text that can't be sent, TooLarge for more than
// initreport.MaxStartBytes or MaxStartTexts; b is returned as it was then.
func (m StartMessage) Append(b []byte) ([]byte, error) {
	if err := m.check(); err != nil {
		return b, err
	}
	texts, size := m.texts()
	if size > initreport.MaxStartBytes || len(texts) > initreport.MaxStartTexts {
		return b,
			fault.New(fault.TooLarge,
				"arguments and environment are %d texts of %d bytes together, at most %d of %d can be given",
				len(texts), size, initreport.MaxStartTexts, initreport.MaxStartBytes).
				WithHint("hand over as a file what is large")
	}
	b = binary.BigEndian.AppendUint32(b, uint32(size)) //nolint:gosec // at most MaxStartBytes
	for _, text := range texts {
		b = append(append(b, text...), 0)
	}
	return b, nil
}

// texts returns all that the message consists of, and how many bytes it takes.
func (m StartMessage) texts() (all []string, size int) {
	all = slices.Concat([]string{m.Stdin, m.Stdout, strconv.Itoa(len(m.Args))}, m.Args, m.Env)
	for _, text := range all {
		size += len(text) + 1
	}
	return all, size
}

// check names what is wrong by its place only: arguments and environments are payloads.
func (m StartMessage) check() error {
	if hasNUL(m.Stdin) || hasNUL(m.Stdout) {
		return fault.New(fault.Input, "the name of the program's stdin or stdout has a NUL byte in it")
	}
	for i, arg := range m.Args {
		if hasNUL(arg) {
			return fault.New(fault.Input, "argument %d has a NUL byte in it", i+1)
		}
	}
	for i, entry := range m.Env {
		if hasNUL(entry) || strings.IndexByte(entry, '=') < 1 {
			return fault.New(fault.Input, "environment entry %d is not NAME=value without NUL bytes", i+1)
		}
	}
	return nil
}

func hasNUL(s string) bool { return strings.IndexByte(s, 0) >= 0 }
