package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/client"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/runtime"
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

// faultOf turns an error of the Docker client into a *fault.Error. An error that
// came with the end of ctx stays the context's.
func (e *Engine) faultOf(ctx context.Context, c call, err error) error {
	var known *fault.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(context.Cause(ctx), runtime.ErrUnreachable): // see runtime.Silent
		return fmt.Errorf("%s %s: %w", c.verb, c, context.Cause(ctx))
	case ctx.Err() != nil:
		return fmt.Errorf("%s %s: %w", c.verb, c, ctx.Err())
	case errors.As(err, &known):
		return err
	case cerrdefs.IsNotFound(err):
		return fault.Wrap(fault.NotFound, err, "the engine has no %s", c)
	case isConnection(err):
		return e.unavailable(err)
	}
	text := strings.ToLower(err.Error())
	for _, r := range refusals {
		if strings.Contains(text, r.text) {
			return fault.Wrap(r.kind, err, "%s", r.msg).WithHint("%s", r.hint)
		}
	}
	if refused := refusedLimit(text, err); refused != nil {
		return refused
	}
	return fault.Wrap(fault.Internal, err, "the engine could not %s %s", c.verb, c)
}

// isConnection reports that the engine wasn't reached, or went away before its answer's end.
func isConnection(err error) bool {
	var network *net.OpError
	return client.IsErrConnectionFailed(err) || errors.As(err, &network) || errors.As(err, &connectionLost{}) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) // amid an answer
}

// unavailable says why the engine doesn't answer and what to do about it.
func (e *Engine) unavailable(err error) error {
	at := e.endpoint
	err = fmt.Errorf("%w: %w", runtime.ErrUnreachable, err)
	if at.local() && (errors.Is(err, fs.ErrPermission) || strings.Contains(err.Error(), "permission denied")) {
		return fault.Wrap(fault.Unavailable, err, "no permission to use the Docker engine at %s", at).
			WithHint("add yourself to the docker group (`sudo usermod -aG docker $USER`, then log in again), or use " +
				"rootless Docker")
	}
	if path := at.socket(); at.local() && path != "" {
		if _, statErr := os.Stat(path); errors.Is(statErr, fs.ErrNotExist) {
			return fault.Wrap(fault.Unavailable, err, "there is no Docker engine at %s: the socket does not exist", at).
				WithHint("%s", at.hint())
		}
	}
	return fault.Wrap(fault.Unavailable, err, "the Docker engine at %s does not answer", at).WithHint("%s", at.hint())
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
