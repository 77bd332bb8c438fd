package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// submitGrace bounds a submission in progress after an interrupt.
const submitGrace = 2 * time.Second

// runOnServer is `aod run` with --server.
func (a *app) runOnServer(ctx context.Context, name string, flags runFlags) error {
	if flags.keep {
		return fault.New(fault.Input, "--keep is for runs on this machine: the run's directory is the server's").
			WithHint("`aod runs ID --json` shows what the server keeps of a run, `aod logs ID` its log")
	}
	if len(flags.secrets) > 0 {
		return fault.New(fault.Input, "--secret is for runs on this machine").
			WithHint("a server has secrets of its own, see its setting `secrets`")
	}
	server, err := a.connect()
	if err != nil {
		return err
	}
	unit, err := a.unitOnServer(ctx, server, name)
	if err != nil {
		return err
	}
	submission, err := a.submission(ctx, server, unit, flags)
	if err != nil {
		return err
	}
	return a.start(ctx, server, flags, func(ctx context.Context) (api.Record, error) {
		return server.Submit(ctx, submission)
	})
}

// unitOnServer uploads a directory, as in `aod run DIR`. A name means a unit of the server.
func (a *app) unitOnServer(ctx context.Context, server *client.Client, arg string) (string, error) {
	info, err := os.Stat(arg)
	if err == nil && info.IsDir() || strings.ContainsRune(arg, filepath.Separator) {
		dir, err := a.find(arg)
		if err != nil {
			return "", err
		}
		return a.upload(ctx, server, dir)
	}
	return arg, nil
}

// submission reads the flags by the server's contract.
func (a *app) submission(
	ctx context.Context, server *client.Client, unit string, flags runFlags,
) (client.Submission, error) {
	metadata, err := flags.meta.read()
	if err != nil {
		return client.Submission{}, err
	}
	raw, err := server.Schema(ctx, unit)
	if err != nil {
		return client.Submission{}, err
	}
	terms, findings := contract.Parse(raw)
	if terms == nil {
		return client.Submission{}, fault.New(fault.Capsule, "the contract of %q on %s can't be used", unit,
			server.Server()).
			WithFindings(findings)
	}
	input, files, err := flags.input.read(terms.Input, a.stdin)
	if err != nil {
		return client.Submission{}, err
	}
	if err := knownFields(terms.Input, files); err != nil {
		return client.Submission{}, err
	}
	sub := client.Submission{
		Unit: unit, Input: input.JSON(), Timeout: flags.timeout, Metadata: metadata,
		Unattended: flags.unattended,
	}
	if sub.Env, err = flags.start.variables(); err != nil {
		return client.Submission{}, err
	}
	sub.Dir = flags.start.dir
	if sub.Project, err = flags.project.send(ctx, a); err != nil {
		return client.Submission{}, err
	}
	for _, f := range files {
		sub.Files = append(sub.Files, client.InputFile{Field: f.Field, Path: f.Path})
	}
	return sub, nil
}

// knownFields avoids the upload of files that the server would refuse. It leaves nested
// fields to the server.
func knownFields(schema *contract.Schema, files []run.InputFile) error {
	known := schema.TakingFiles()
	var findings []fault.Finding
	for _, f := range files {
		if !strings.Contains(f.Field, ".") && !slices.Contains(known, f.Field) {
			findings = append(findings, fault.Finding{
				Message: fmt.Sprintf("a file was given for %q, which the contract doesn't declare as one", f.Field),
				Hint:    fmt.Sprintf("its file fields are %q", known),
			})
		}
	}
	if len(findings) > 0 {
		return fault.New(fault.Input, "a file was given that the contract doesn't know").WithFindings(findings)
	}
	return nil
}

// start starts a run, and follows it to its end unless --detach is set.
func (a *app) start(
	ctx context.Context, server *client.Client, flags runFlags, submit func(context.Context) (api.Record, error),
) error {
	patient, done := lingering(ctx, submitGrace)
	defer done()
	record, err := submit(patient)
	if err != nil && ctx.Err() != nil {
		return fault.Wrap(fault.Cancelled, err, "interrupted before the server said that the run has started")
	}
	if err != nil {
		return err
	}
	switch {
	case flags.detach && flags.json:
		return a.stdout.json(record)
	case flags.detach:
		a.stdout.line("%s", record.ID)
		return nil
	}
	return a.follow(ctx, server, record, flags)
}

// lingering returns a context that ends d after ctx does: a request that was sent already
// should get its answer, so that the run can be cancelled.
func lingering(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(d, cancel) })
	return longer, func() {
		stop()
		cancel()
	}
}
