package docker

import (
	"errors"
	"io"
	"net"
	"regexp"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/client"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

// call names what was asked of the engine, for the public side of an error. The
// engine's own words stay on the private side: they hold paths and names.
type call struct {
	verb string // "start"
	noun string // "container"
	name string // an id or a reference
}

func onContainer(verb, id string) call { return call{verb, "container", id[:min(len(id), 12)]} }

func (c call) String() string { return strings.TrimSpace(c.noun + " " + bounded(c.name, 200)) }

// refusals are answers of the engine that a user can do something about.
var refusals = []struct {
	text string // lower case, part of the engine's message
	kind fault.Kind
	msg  string
	hint string
}{
	{
		"bind source path does not exist", fault.Internal,
		"a directory to mount does not exist on the engine's host",
		"the engine must see the same files as this program: it may run on another machine or in a virtual machine " +
			"that doesn't share the data directory",
	},
	{
		"is already in use by", fault.Conflict,
		"a container of this name is there already",
		"it is of the same run; remove it first",
	},
	{
		"volume is in use", fault.Conflict,
		"a container still has the volume",
		"remove the container first",
	},
	{
		"conflict: unable to ", fault.Conflict, // to delete an image, or to remove a name of it
		"a container still has the image",
		"remove the container first",
	},
	{
		"is not running", fault.Conflict,
		"the container is not running",
		"it has ended, or was never started",
	},
	{
		"does not support reading", fault.Unsupported,
		"the engine has not kept the container's output",
		"only output of durable runs is kept",
	},
	{
		"runtime name", fault.Unsupported, "the engine has no such isolation runtime",
		"`docker info` lists its runtimes; install the one that is asked for, or ask for none",
	},
	{
		"unknown runtime", fault.Unsupported, "the engine has no such isolation runtime",
		"`docker info` lists its runtimes; install the one that is asked for, or ask for none",
	},
	{
		"seccomp is not enabled", fault.Unsupported, "the engine has no seccomp, which sandboxes need",
		"use an engine and a kernel with seccomp",
	},
}

// isConnection reports that the engine wasn't reached, or went away before its answer's end.
func isConnection(err error) bool {
	var network *net.OpError
	return client.IsErrConnectionFailed(err) || errors.As(err, &network) || errors.As(err, &connectionLost{}) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) // amid an answer
}

// isGoing reports that a container is on its way out.
func isGoing(err error) bool { return refused(err, "removal of container", "already in progress") }

// isIdle reports that a container isn't running, which who wants it stopped wanted.
func isIdle(err error) bool {
	return cerrdefs.IsNotFound(err) || refused(err, "not running")
}

func refused(err error, texts ...string) bool {
	if err == nil || isConnection(err) {
		return false
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			return false
		}
	}
	return true
}

// bounded cuts s to at most limit bytes of valid UTF-8.
func bounded(s string, limit int) string {
	if len(s) > limit {
		s = s[:limit] + "…"
	}
	return strings.ToValidUTF8(s, "")
}

// connectionLost marks an error of a connection that had been made: the engine went away.
type connectionLost struct{ error }

func (c connectionLost) Unwrap() error { return c.error }

// limitRefusals are the words with which engines and their runtimes refuse to set a limit.
var limitRefusals = []struct {
	words func() *regexp.Regexp // of the message in lower case
	limit string
	hint  string
}{
	{
		lazyregexp.New(`memory limit|memory\.(limit_in_bytes|memsw|max|swap)`), "memory limit (limits.memory)",
		"give it at least 16 MiB, and no more than the engine's machine has",
	},
	{
		lazyregexp.New(`cpu\.(cfs|max)|nanocpus|range of cpus|cpu cfs`), "limit of processors (limits.cpus)",
		"give it at least 0.01; the engine's cgroups must have the controller cpu",
	},
	{
		lazyregexp.New(`pids\.max|pids limit`), "limit of processes (limits.pids)",
		"give it fewer; the engine's cgroups must have the controller pids",
	},
	{
		lazyregexp.New(`rlimit`), "limits of open files and of a file's size",
		"the engine may not set them: raise the limits of its own service (LimitNOFILE, LimitFSIZE)",
	},
}

// refusedLimit is the fault of a limit that the engine can't set, or nil. text is err's message
// in lower case.
func refusedLimit(text string, err error) error {
	for _, r := range limitRefusals {
		if r.words().MatchString(text) {
			return fault.Wrap(fault.Unsupported, err, "the engine can't set the %s: it said %q", r.limit,
				reasonOf(err)).WithHint("%s", r.hint)
		}
	}
	return nil
}

// reasonOf is the end of what the engine said, without its paths.
func reasonOf(err error) string {
	words := strings.Fields(strings.TrimSuffix(err.Error(), ": unknown"))
	for i, word := range words {
		if strings.ContainsRune(word, '/') {
			words[i] = "…"
		}
	}
	const most = 160 // bytes
	text := strings.Join(words, " ")
	for len(text) > most {
		_, rest, ok := strings.Cut(text, ": ")
		if !ok {
			return bounded(text, most)
		}
		text = rest
	}
	return text
}
