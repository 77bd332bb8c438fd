package runcmd

import (
	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/orchestrator"
)

// Form is how the end of a run is printed.
type Form uint8

// The forms.
const (
	AsOutput Form = iota
	asRecord
	AsText // of a wrapped agent: its answer, where it has the field text
)

// Form is how the flags have the end printed.
func (f Flags) Form() Form {
	switch {
	case f.JSON:
		return asRecord
	case f.Text:
		return AsText
	}
	return AsOutput
}

// Report prints the result and returns the error that determines the exit code.
func Report(env *cli.Env, record api.Record, kept string, as Form, failure error) error {
	if err := PrintRun(env, record, as); err != nil {
		return err
	}
	for _, f := range record.Files {
		env.Note("%s %s", ui.Printable(ui.RelativePath(f.Path)), env.Err.Style(ui.Dim, ui.Bytes(f.SizeBytes)))
	}
	if kept != "" {
		env.Err.Line("the run's directory was kept: %s", kept)
	}
	if failure != nil {
		return failure
	}
	if record.Error != nil {
		env.Err.RunError(record.Unit, *record.Error)
	}
	if record.Outcome != api.Success && record.Models != nil {
		env.Note("`aod runs %s --models` shows what its models were asked and answered", ui.Printable(record.ID))
	}
	if code := ExitCode(record); code != 0 {
		return ui.ExitError(code)
	}
	return nil
}

// PrintRun prints a run's record, or its output if it has one.
func PrintRun(env *cli.Env, record api.Record, as Form) error {
	switch {
	case as == asRecord:
		return env.Out.JSON(record)
	case record.Outcome != api.Success:
		return nil
	case as == AsText:
		if text, is := record.Text(); is {
			printText(env, text)
			return nil
		}
	}
	return env.Out.JSON(record.Output)
}

func printText(env *cli.Env, text string) {
	if env.Out.Terminal {
		text = ui.Printable(text)
	}
	env.Out.Line("%s", text)
}

// ExitCode is the exit code for a run that has ended.
func ExitCode(record api.Record) int {
	switch record.Outcome {
	case api.Success:
		return 0
	case api.InvalidInput:
		return fault.ExitCode(fault.New(fault.Input, ""))
	case api.TimedOut:
		return fault.ExitCode(fault.New(fault.Deadline, ""))
	case api.WasCancelled:
		return fault.ExitCode(fault.New(fault.Cancelled, ""))
	}
	if record.ExitCode == nil {
		if record.Outcome == api.RemoteError || record.Outcome == api.ContractViolation ||
			record.Outcome == api.StepFailed {
			return int(ui.ExitFindings) // remote agents and flows have no exit code
		}
		return fault.ExitCode(fault.New(fault.Internal, ""))
	}
	return *record.ExitCode
}

// noteRun prints the id of a kept run where somebody is likely to want it: to a person, and
// of a run that failed.
func noteRun(env *cli.Env, ended orchestrator.Ended, flags Flags) {
	switch {
	case ended.Past != nil:
		env.Note("%s the run could not be kept: %s", env.Err.Style(ui.Yellow, "warning:"),
			ui.Printable(ended.Past.Error()))
	case flags.History > 0 && (env.Err.Terminal || ended.Record.Outcome != api.Success):
		env.Note("%s", env.Err.Style(ui.Dim, "run "+ended.Record.ID))
	}
}
