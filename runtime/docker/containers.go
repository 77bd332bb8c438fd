package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/client"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/pause"
	"github.com/agent-on-demand/aod/runtime"
)

// NextExit subscribes to the container's next exit; the engine has acknowledged when
// it returns. The end of ctx ends the subscription and nothing is sent then.
func (e *Engine) NextExit(ctx context.Context, id string) (<-chan runtime.Exit, error) {
	results, errs := e.cli.ContainerWait(ctx, id, container.WaitConditionNextExit)
	select {
	case err := <-errs: // refused before it began
		return nil, e.faultOf(ctx, onContainer("wait for", id), err)
	default:
	}
	exits := make(chan runtime.Exit, 1)
	go func() {
		// The client always sends on one of the two, also at the end of ctx, and
		// its own goroutine hangs for ever if nobody takes it.
		select {
		case r := <-results:
			exits <- exitOf(id, r)
		case err := <-errs:
			if ctx.Err() == nil {
				exits <- runtime.Exit{Err: e.faultOf(ctx, onContainer("wait for", id), connectionLost{err})}
			}
		}
	}()
	return exits, nil
}

func exitOf(id string, r container.WaitResponse) runtime.Exit {
	if r.Error != nil && r.Error.Message != "" {
		err := fault.New(fault.Internal, "%s", r.Error.Message)
		return runtime.Exit{Err: fault.Wrap(fault.Internal, err, "the engine could not wait for %s",
			onContainer("", id))}
	}
	return runtime.Exit{Code: int(r.StatusCode)}
}

// Start starts a created container. Of several calls at once the engine does one, and it
// has nothing to do for a container that is running.
func (e *Engine) Start(ctx context.Context, id string) error {
	err := e.cli.ContainerStart(ctx, id, container.StartOptions{})
	return e.faultOf(ctx, onContainer("start", id), err)
}

// Stop sends SIGTERM and, after the grace time rounded up to seconds, SIGKILL.
func (e *Engine) Stop(ctx context.Context, id string, grace time.Duration) error {
	seconds := int(math.Ceil(max(grace, 0).Seconds()))
	err := e.cli.ContainerStop(ctx, id, container.StopOptions{Timeout: &seconds})
	if isIdle(err) {
		return nil
	}
	return e.faultOf(ctx, onContainer("stop", id), err)
}

// Kill sends SIGKILL.
func (e *Engine) Kill(ctx context.Context, id string) error {
	err := e.cli.ContainerKill(ctx, id, "SIGKILL")
	if isIdle(err) {
		return nil
	}
	return e.faultOf(ctx, onContainer("kill", id), err)
}

// The engine learns of an exit and of its cause, the memory limit, in two messages.
// The second came up to 13 ms after the first on a busy machine.
const (
	oomPatience = 100 * time.Millisecond
	oomPause    = 5 * time.Millisecond
)

// Inspect returns the container's state. When a container with a memory limit was
// killed, it asks again for up to a tenth of a second until the engine names memory
// as the reason: by then it was something else.
func (e *Engine) Inspect(ctx context.Context, id string) (runtime.ContainerState, error) {
	state, limited, err := e.inspect(ctx, id)
	for deadline := time.Now().Add(oomPatience); err == nil && limited && reasonMayCome(state) &&
		time.Now().Before(deadline); {
		select {
		case <-ctx.Done():
			return state, nil
		case <-time.After(oomPause):
		}
		state, limited, err = e.inspect(ctx, id)
	}
	return state, err
}

// reasonMayCome reports that the state is what a container killed for its memory
// looks like before the engine knows why.
func reasonMayCome(state runtime.ContainerState) bool {
	return !state.Running && state.ExitCode == 137 && !state.OOMKilled
}

func (e *Engine) inspect(ctx context.Context, id string) (state runtime.ContainerState, memoryLimited bool, err error) {
	found, err := e.cli.ContainerInspect(ctx, id)
	if err != nil {
		return state, false, e.faultOf(ctx, onContainer("inspect", id), err)
	}
	if found.ContainerJSONBase == nil || found.State == nil {
		return state, false, fault.New(fault.Internal, "the engine told nothing about %s", onContainer("", id))
	}
	state = runtime.ContainerState{
		Status:     found.State.Status,
		Running:    found.State.Running,
		PID:        found.State.Pid,
		ExitCode:   found.State.ExitCode,
		OOMKilled:  found.State.OOMKilled,
		Error:      found.State.Error,
		StartedAt:  parseTime(found.State.StartedAt),
		FinishedAt: parseTime(found.State.FinishedAt),
	}
	if !state.Running && !state.FinishedAt.IsZero() && state.FinishedAt.Before(state.StartedAt) {
		// The engine notes the start of a program after the start: a very short one
		// has ended by then.
		state.FinishedAt = state.StartedAt
	}
	return state, found.HostConfig != nil && found.HostConfig.Memory > 0, nil
}

// LayerBytes implements runtime.Layers.
func (e *Engine) LayerBytes(ctx context.Context, id string) (int64, error) {
	found, _, err := e.cli.ContainerInspectWithRaw(ctx, id, true)
	if err != nil {
		return 0, e.faultOf(ctx, onContainer("measure", id), err)
	}
	if found.ContainerJSONBase == nil || found.SizeRw == nil {
		return 0, fault.New(fault.Unsupported, "the engine doesn't tell the size of a container's layer")
	}
	return *found.SizeRw, nil
}

// parseTime returns the zero time for what is no time: the engine's way to say never.
func parseTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}
	}
	return t
}

// Remove kills and removes a container with its anonymous volumes. Where the engine removes it
// already, Remove waits for that, and asks again: the engine's own removal may fail, and only
// its log says so.
func (e *Engine) Remove(ctx context.Context, id string) error {
	patience, cancel := context.WithTimeout(ctx, removalTime)
	defer cancel()
	for {
		err := e.cli.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
		switch {
		case cerrdefs.IsNotFound(err):
			return nil
		case !isGoing(err) || patience.Err() != nil:
			return e.faultOf(ctx, onContainer("remove", id), err)
		}
		awaitRemoval(patience, e.cli, id)
	}
}

// removalTime bounds the wait for a removal that somebody else asked for, and removalPause is
// the least time of it: the engine tells of a failure a moment before another may begin.
const (
	removalTime  = 10 * time.Second
	removalPause = 20 * time.Millisecond
)

func awaitRemoval(ctx context.Context, cli *client.Client, id string) {
	gone, failed := cli.ContainerWait(ctx, id, container.WaitConditionRemoved)
	select {
	case <-gone:
	case <-failed: //nolint:errcheck // the next request says whether it is gone
	}
	_ = pause.For(ctx, removalPause)
}

// ContainersByLabel lists containers in any state that carry all the labels.
func (e *Engine) ContainersByLabel(ctx context.Context, labels map[string]string) ([]runtime.ContainerRef, error) {
	// The client looks at its API version here before it negotiates it, and the first
	// calls of others may do so at the same moment; see apiURL.
	_ = e.cli.NewVersionError(ctx, "1.0", "")
	found, err := e.cli.ContainerList(ctx, container.ListOptions{All: true, Filters: labelFilter(labels)})
	if err != nil {
		return nil, e.faultOf(ctx, call{"list", "containers", ""}, err)
	}
	refs := make([]runtime.ContainerRef, 0, len(found))
	for _, c := range found {
		refs = append(refs, runtime.ContainerRef{ID: c.ID, Labels: c.Labels, State: c.State})
	}
	return refs, nil
}

func labelFilter(labels map[string]string) filters.Args {
	args := filters.NewArgs()
	for name, value := range labels {
		if value != "" {
			name += "=" + value
		}
		args.Add("label", name)
	}
	return args
}

// maxStats bounds the engine's figures of a container, in bytes.
const maxStats = 1 << 20

// CPUTime returns how much processor time a container has used. Docker 20.10 takes a second
// for it, in which it does nothing.
func (e *Engine) CPUTime(ctx context.Context, id string) (time.Duration, error) {
	stats, err := e.cli.ContainerStatsOneShot(ctx, id)
	if err != nil {
		return 0, e.faultOf(ctx, onContainer("measure", id), err)
	}
	defer stats.Body.Close()
	var figures container.StatsResponse
	if err := json.NewDecoder(io.LimitReader(stats.Body, maxStats)).Decode(&figures); err != nil {
		return 0, fault.Wrap(fault.Unavailable, fmt.Errorf("figures of container: %w", err),
			"the engine did not say what a container uses")
	}
	return time.Duration(min(figures.CPUStats.CPUUsage.TotalUsage, math.MaxInt64)), nil
}

// Logs returns what a started container has written and goes on to write, until its end.
// Readers get io.EOF there and after Close. As with Attach, both streams come over one
// connection. Bytes that aren't UTF-8 were replaced by the engine.
func (e *Engine) Logs(ctx context.Context, id string) (*runtime.Streams, error) {
	// The client ties the answer to the context of the call, which bounds the call alone.
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	callOver := context.AfterFunc(ctx, stop)
	body, err := e.cli.ContainerLogs(following, id,
		container.LogsOptions{ShowStdout: true, ShowStderr: true, Follow: true})
	if !callOver() && err == nil {
		err = errors.Join(ctx.Err(), body.Close())
	}
	if err != nil {
		stop()
		return nil, e.faultOf(ctx, onContainer("read the log of", id), err)
	}
	return demultiplex(logConn{body, stop}), nil
}

// logConn is the body of an answer and what ends it.
type logConn struct {
	io.ReadCloser
	stop context.CancelFunc
}

// Close ends a read that is under way, too.
func (c logConn) Close() error {
	c.stop()
	return c.ReadCloser.Close()
}

// Create makes a container from the spec and starts nothing. A CPU limit above what
// the engine has becomes what it has: asking for eight of two CPUs means all of them.
// Where this process runs in a container of the engine's, the sources of the mounts are
// its own paths; one that the engine's host doesn't have is an Unsupported fault.
func (e *Engine) Create(ctx context.Context, spec runtime.ContainerSpec) (_ string, err error) {
	if spec.Mounts, err = e.hostMounts(ctx, spec.Mounts); err != nil {
		return "", err
	}
	config, host := containerConfig(spec)
	if most := e.maxNanoCPUs.Load(); most > 0 {
		host.NanoCPUs = min(host.NanoCPUs, most)
	}
	if e.noProfile.Load() || e.unconfined && e.noSeccomp.Load() {
		host.SecurityOpt = securityOptions(false)
	}
	if e.noQuota.Load() {
		host.StorageOpt = nil
	}
	made, err := e.cli.ContainerCreate(ctx, &config, &host, nil, nil, spec.Name)
	if host.StorageOpt != nil && takesNoQuota(err) {
		e.noQuota.Store(true)
		host.StorageOpt = nil
		made, err = e.cli.ContainerCreate(ctx, &config, &host, nil, nil, spec.Name)
	}
	if takesNoProfile(err) {
		e.noProfile.Store(true)
		host.SecurityOpt = securityOptions(false)
		made, err = e.cli.ContainerCreate(ctx, &config, &host, nil, nil, spec.Name)
	}
	if most, tooMany := cpusOffered(err); tooMany && host.NanoCPUs > most {
		e.maxNanoCPUs.Store(most)
		host.NanoCPUs = most
		made, err = e.cli.ContainerCreate(ctx, &config, &host, nil, nil, spec.Name)
	}
	if err != nil {
		// What the engine doesn't find when it creates is the image.
		return "", e.faultOf(ctx, call{"create a container from", "image", spec.Image}, err)
	}
	return made.ID, nil
}

// KeepsProjects implements runtime.ProjectKeeper by the profile of sandboxes.
func (e *Engine) KeepsProjects() bool { return !e.noProfile.Load() && !e.noSeccomp.Load() }
