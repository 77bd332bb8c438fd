package runcmd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/lookup"
	"github.com/agent-on-demand/aod/cmd/aod/upload"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// runOnServer is `aod run` with --server.
func runOnServer(ctx context.Context, env *cli.Env, name string, flags Flags) error {
	if flags.Keep {
		return fault.New(fault.Input, "--keep is for runs on this machine: the run's directory is the server's").
			WithHint("`aod runs ID --json` shows what the server keeps of a run, `aod logs ID` its log")
	}
	server, err := env.Connect()
	if err != nil {
		return err
	}
	unit, err := upload.Unit(ctx, env, server, name, flags.Replace)
	if err != nil {
		return err
	}
	submission, err := Submission(ctx, env, server, unit, flags)
	if err != nil {
		return err
	}
	return Start(ctx, env, server, flags, func(ctx context.Context) (api.Record, error) {
		return server.Runs.Submit(ctx, submission)
	})
}

// Submission reads the flags by the server's contract.
func Submission(
	ctx context.Context, env *cli.Env, server *client.Client, unit string, flags Flags,
) (client.Submission, error) {
	metadata, err := flags.Meta.Read()
	if err != nil {
		return client.Submission{}, err
	}
	raw, err := server.Units.Schema(ctx, unit)
	if err != nil {
		return client.Submission{}, lookup.OnlyHere(env, unit, err, lookup.Uploads)
	}
	terms, findings := contract.Parse(raw)
	if terms == nil {
		return client.Submission{}, fault.New(fault.Capsule, "the contract of %q on %s can't be used", unit,
			server.Server()).
			WithFindings(findings)
	}
	input, files, err := flags.Input.Read(terms.Input, env.In)
	if err != nil {
		return client.Submission{}, err
	}
	if err := knownFields(terms.Input, files); err != nil {
		return client.Submission{}, err
	}
	sub := client.Submission{
		Unit: unit, Input: input.JSON(), Timeout: flags.Timeout, Metadata: metadata,
		Unattended: flags.unattended,
	}
	if sub.Env, err = flags.Start.Variables(); err != nil {
		return client.Submission{}, err
	}
	sub.Dir = flags.Start.Dir
	if sub.Project, err = flags.Project.Send(ctx, env); err != nil {
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

// Start starts a run, and follows it to its end unless --detach is set.
func Start(
	ctx context.Context, env *cli.Env, server *client.Client, flags Flags,
	submit func(context.Context) (api.Record, error),
) error {
	patient, done := cli.Lingering(ctx, cli.SubmitGrace)
	defer done()
	record, err := submit(patient)
	if err != nil && ctx.Err() != nil {
		return fault.Wrap(fault.Cancelled, err, "interrupted before the server said that the run has started")
	}
	if err != nil {
		return err
	}
	switch {
	case flags.Detach && flags.JSON:
		return env.Out.JSON(record)
	case flags.Detach:
		env.Out.Line("%s", record.ID)
		return nil
	}
	return follow(ctx, env, server, record, flags)
}
