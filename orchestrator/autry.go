package orchestrator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"syscall"
	"time"

	"github.com/agent-on-demand/aod/au"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/initreport"
)

// AUTrial is one start of an Agentic Unit, to see what it does. Nothing of it is held
// against the unit's model card.
type AUTrial struct {
	Stdin io.Reader // read to its end before the unit starts; nil is no input
	// Open gives the unit a stdin that says nothing and doesn't end, instead of none. With
	// an engine elsewhere there is none all the same.
	Open        bool
	Args        []string      // as they follow the program's name
	Env         []string      // NAME=value
	ModelPath   string        // a file or directory of this machine, absolute, that stands at AUModelPath
	MemoryBytes int64         // 0 is the unit's own limit
	Timeout     time.Duration // from its start; 0 is the unit's own limit
	Observe     func(Event)   // as in Request
}

// Observed is what a trial showed.
type Observed struct {
	au.Run
	Signal      int    // that ended the program; 0 is none
	StartError  string // why the program could not be started; "" when it was
	MemoryLimit int64  // bytes
}

// AUModelPath is where a unit finds a model of this machine.
func AUModelPath(source string) string { return path.Join(modelDir, filepath.Base(source)) }

// Try starts a unit once, without a network whatever it asks for, and tells what came of
// it. How the unit ends is never an error.
func (o *Orchestrator) Try(ctx context.Context, c *capsule.Capsule, trial AUTrial) (seen Observed, err error) {
	if c.Kind != capsule.KindAU {
		return seen, fault.New(fault.Input, "%q is a capsule, no Agentic Unit", c.Name)
	}
	id, err := newRunID("")
	if err != nil {
		return seen, err
	}
	run := newRun(id, prepared{}, Request{Capsule: c, Timeout: trial.Timeout, Observe: trial.Observe})
	image, err := o.ensureImage(ctx, run)
	if err != nil {
		return seen, err
	}
	dir, err := o.data.open(id)
	if err != nil {
		return seen, err
	}
	defer func() { err = errors.Join(err, o.dispose(run, dir, errors.Is(err, runtime.ErrLeftBehind))) }()
	spec := o.spec(run, image)
	spec.Aside, spec.Network = "trial", "none"
	return o.try(ctx, run, spec, filepath.Join(dir.path, "trial"), trial)
}

// try makes a trial in a directory of its own, which is gone afterwards.
func (o *Orchestrator) try(ctx context.Context, run *Run, spec runtime.Spec, dir string, trial AUTrial) (seen Observed, err error) {
	layout, err := o.trialLayout(spec, dir)
	if err != nil {
		return seen, err
	}
	defer func() { err = errors.Join(err, removeRun(dir)) }()
	spec, err = o.trialSpec(spec, trial)
	if err != nil {
		return seen, err
	}
	stdin, err := o.placeStdin(&spec, layout, trial)
	if err != nil {
		return seen, err
	}
	defer func() { _ = stdin.close() }() // nothing was written
	layout = layout.At(o.engine, spec)
	stderr := &stderrText{limit: spec.Limits.LogBytes}
	log := runtime.NewLog(spec.Limits.LogBytes, func(line runtime.LogLine) { stderr.add(line); run.logged(line) })
	end, err := o.startToEnd(ctx, spec, layout, log, or(trial.Timeout, spec.Limits.Timeout))
	if err != nil {
		return seen, err
	}
	seen = Observed{Run: ranTo(end, spec.Limits), Signal: end.Report.Signal, StartError: end.Report.StartError, MemoryLimit: spec.Limits.MemoryBytes}
	_, cut := log.Bytes()
	seen.StderrTail, seen.StderrBytes = stderr.bytes(cut)
	seen.StdinBytes = stdin.size
	seen.Stdout, err = printed(layout)
	return seen, err
}

// startToEnd returns when the container has ended and is gone, and its log is whole.
func (o *Orchestrator) startToEnd(ctx context.Context, spec runtime.Spec, layout runtime.Layout, log *runtime.Log, timeout time.Duration) (runtime.End, error) {
	sandbox, err := o.startSandbox(ctx, spec, layout, log)
	if err != nil {
		return runtime.End{}, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	end, err := sandbox.Wait(limited)
	return end, errors.Join(err, sandbox.Remove(ctx), broughtAbout(end))
}

func (o *Orchestrator) trialLayout(spec runtime.Spec, dir string) (runtime.Layout, error) {
	initFile, err := o.initFile(spec.Image.Arch)
	if err != nil {
		return runtime.Layout{}, err
	}
	if err := errors.Join(removeRun(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return runtime.Layout{}, noRoom(err)
	}
	return runtime.NewLayout(dir, initFile)
}

// trialSpec makes a trial of the spec of a run.
func (o *Orchestrator) trialSpec(spec runtime.Spec, trial AUTrial) (runtime.Spec, error) {
	spec.Durable = false
	spec.Limits.MemoryBytes = or64(trial.MemoryBytes, spec.Limits.MemoryBytes)
	spec.Env = append(spec.Env[:len(spec.Env):len(spec.Env)], trial.Env...)
	spec.Filter = &runtime.Filter{Args: trial.Args}
	if trial.ModelPath == "" {
		return spec, nil
	}
	if runtime.IsRemote(o.engine) {
		return spec, fault.New(fault.Unsupported, "a model of this machine can't be mounted with an engine elsewhere").
			WithHint("put it into the unit's image")
	}
	spec.Filter.Model = &runtime.Mount{Source: trial.ModelPath, Target: AUModelPath(trial.ModelPath), ReadOnly: true}
	return spec, nil
}

// trialStdin is what a trial's unit has as its stdin.
type trialStdin struct {
	size int64
	open *os.File // the other end of a pipe that stays open
}

func (s trialStdin) close() error {
	if s.open == nil {
		return nil
	}
	return s.open.Close()
}

const stdinName = "stdin"

func (o *Orchestrator) placeStdin(spec *runtime.Spec, layout runtime.Layout, trial AUTrial) (in trialStdin, err error) {
	root, err := layout.InputRoot()
	if err != nil {
		return in, noRoom(err)
	}
	defer func() { _ = root.Close() }() // holds no data
	switch {
	case trial.Stdin != nil:
		spec.Filter.Stdin = stdinName
		in.size, err = spoolStdin(root, trial.Stdin)
	case trial.Open && !runtime.IsRemote(o.engine):
		spec.Filter.Stdin = stdinName
		in.open, err = openPipe(filepath.Join(root.Name(), stdinName))
	}
	return in, err
}

func spoolStdin(root *os.Root, from io.Reader) (int64, error) {
	file, err := root.OpenFile(stdinName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, noRoom(err)
	}
	in := &source{r: from}
	size, err := io.Copy(file, in)
	err = errors.Join(err, file.Chmod(0o644), file.Close())
	if in.err != nil {
		return 0, fault.Wrap(fault.Input, in.err, "the unit's input can't be read")
	}
	if err != nil {
		return 0, noRoom(err)
	}
	return size, nil
}

// openPipe makes a pipe that nothing comes through as long as its other end is open.
func openPipe(name string) (*os.File, error) {
	if err := errors.Join(syscall.Mkfifo(name, 0o600), os.Chmod(name, 0o644)); err != nil {
		return nil, noRoom(err)
	}
	pipe, err := os.OpenFile(name, os.O_RDWR, 0) // which doesn't wait for a reader
	if err != nil {
		return nil, noRoom(err)
	}
	return pipe, nil
}

// stderrText is what a program wrote to its stderr, up to the limit of the log.
type stderrText struct {
	limit int64
	text  bytes.Buffer
}

func (s *stderrText) add(line runtime.LogLine) {
	if line.Stream == "stderr" {
		s.text.WriteString(line.Text + "\n")
	}
}

// bytes returns the text, and how much there was, which nobody knows of what was cut.
func (s *stderrText) bytes(cut bool) (text []byte, size int64) {
	size = int64(s.text.Len())
	if cut {
		size = max(size, s.limit) + 1
	}
	return s.text.Bytes(), size
}

// broughtAbout returns why a trial shows nothing: its caller, or somebody outside, ended it.
func broughtAbout(end runtime.End) error {
	var over *runtime.LimitError
	switch {
	case end.Outside:
		return fault.New(fault.Unavailable, "the unit's container was stopped from outside").WithHint("try it again")
	case end.Cause == nil, errors.Is(end.Cause, errTimeout), errors.As(end.Cause, &over):
		return nil
	}
	return end.Cause
}

// ranTo is what the end of a sandbox says of its program.
func ranTo(end runtime.End, limits runtime.Limits) au.Run {
	run := au.Run{
		ExitCode: end.ExitCode,
		TimedOut: errors.Is(end.Cause, errTimeout),
		// A program that outlives its own child has come to an end in order.
		OutOfMemory: end.ExitCode == exitKilled && (end.OOMKilled || end.Report.OOMKills > 0),
	}
	if !end.StartedAt.IsZero() && end.FinishedAt.After(end.StartedAt) {
		run.Duration = end.FinishedAt.Sub(end.StartedAt)
	}
	if end.Reported {
		peak := peakMemory(end.Report, limits.MemoryBytes)
		run.PeakMemory = &peak
		run.NetworkAttempts, run.FilesWritten = counted(end.Report.NetAttempts), counted(end.Report.FilesLeft)
	}
	return run
}

// peakMemory is what the program took. The container's peak has the files that were read in
// it, which the kernel keeps in memory as long as nobody else wants that: a peak at the limit
// proves nothing when nothing was killed for it.
func peakMemory(report initreport.Report, limit int64) int64 {
	if report.PeakMemoryBytes >= limit && report.OOMKills == 0 {
		return min(report.MaxRSSBytes, report.PeakMemoryBytes)
	}
	return report.PeakMemoryBytes
}

func counted(n int64) *int {
	if n == initreport.NotCounted {
		return nil
	}
	count := int(n)
	return &count
}

// printed reads a unit's stdout, up to one byte more than it may have.
func printed(layout runtime.Layout) ([]byte, error) {
	f, err := layout.OpenStdout()
	if err != nil {
		return nil, fmt.Errorf("read stdout: %w", err)
	}
	defer func() { _ = f.Close() }() // read only
	raw, err := io.ReadAll(io.LimitReader(f, au.MaxOutputBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read stdout: %w", err)
	}
	return raw, nil
}
