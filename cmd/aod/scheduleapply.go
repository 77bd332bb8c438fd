package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/strictjson"
)

// scheduleApplyFlags say which file, and what becomes of what it doesn't name.
type scheduleApplyFlags struct {
	file               string
	prune, check, json bool
}

func (a *app) scheduleApplyCommand() *cobra.Command {
	var flags scheduleApplyFlags
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Give a server the schedules that a file says",
		Long: `Make and change schedules of a server, so that it has those that a YAML file says. What is as
the file says is left alone, so the command may be repeated. A schedule that the file doesn't
name stays, unless --prune removes it. Whatever is wrong with the file is told before anything is
changed. Paused schedules stay paused.`,
		Example: "  aod schedule apply -f schedules.yaml --check\n  aod schedule apply -f schedules.yaml --prune",
		Args:    exactly(0, "its file by -f, and no arguments"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.applySchedules(cmd.Context(), flags) },
	}
	cmd.Flags().StringVarP(&flags.file, "file", "f", "", "the file, or - for stdin")
	cmd.Flags().BoolVar(&flags.prune, "prune", false, "remove schedules that the file doesn't name")
	cmd.Flags().BoolVar(&flags.check, "check", false, "change nothing, and say what would be changed")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print a JSON object a schedule: its name and what became of it")
	return cmd
}

func (a *app) applySchedules(ctx context.Context, flags scheduleApplyFlags) error {
	if flags.file == "" {
		return fault.New(fault.Input, "-f is missing: the file with the schedules").WithHint("see aod schedule apply --help")
	}
	file, err := openSchedules(flags.file, a.stdin)
	if err != nil {
		return err
	}
	server, err := a.connect()
	if err != nil {
		return err
	}
	plan, err := planSchedules(ctx, server, file)
	if err != nil {
		return err
	}
	for _, step := range plan {
		if step.verb == removed && !flags.prune {
			a.note("%s is not in the file; --prune removes it", printable(step.name))
			continue
		}
		if !flags.check {
			if err := step.take(ctx, server); err != nil {
				return file.within(step.name, err)
			}
		}
		if err := a.showStep(step, flags); err != nil {
			return err
		}
	}
	return nil
}

// What becomes of a schedule.
const (
	made      = "made"
	changed   = "changed"
	unchanged = "unchanged"
	removed   = "removed"
)

// scheduleStep is what is to become of a schedule.
type scheduleStep struct {
	wantedSchedule
	verb string
}

func (s scheduleStep) take(ctx context.Context, server *client.Client) error {
	var err error
	switch s.verb {
	case made, changed:
		_, _, err = server.PutSchedule(ctx, s.name, s.spec, s.files)
	case removed:
		err = server.DeleteSchedule(ctx, s.name)
	}
	return err
}

func (a *app) showStep(s scheduleStep, flags scheduleApplyFlags) error {
	if flags.json {
		return a.stdout.json(struct {
			Name   string `json:"name"`
			Change string `json:"change"`
		}{s.name, s.verb})
	}
	verb := s.verb
	if flags.check && verb != unchanged {
		verb = "to be " + verb
	}
	a.stdout.line("%s %s", verb, printable(s.name))
	return nil
}

// planSchedules compares a file with what a server has. What the server would refuse for its times
// or its unit is found here, before anything is changed.
func planSchedules(ctx context.Context, server *client.Client, file *schedulesFile) (plan []scheduleStep, err error) {
	there := map[string]bool{}
	for s, err := range server.Schedules(ctx) {
		if err != nil {
			return nil, err
		}
		there[s.Name] = true
	}
	units, err := server.Units(ctx)
	if err != nil {
		return nil, err
	}
	for _, wanted := range file.schedules {
		step := scheduleStep{wanted, made}
		if there[wanted.name] {
			if step.verb, err = wanted.changeOn(ctx, server); err != nil {
				return nil, err
			}
		}
		delete(there, wanted.name)
		if step.verb != unchanged {
			if err := file.preview(ctx, server, wanted, units); err != nil {
				return nil, err
			}
		}
		plan = append(plan, step)
	}
	for name := range there {
		plan = append(plan, scheduleStep{wantedSchedule{name: name}, removed})
	}
	slices.SortFunc(plan, compareSteps)
	return plan, file.err()
}

// compareSteps has removals come last, and else goes by name.
func compareSteps(x, y scheduleStep) int {
	if gone := x.verb == removed; gone != (y.verb == removed) {
		if gone {
			return 1
		}
		return -1
	}
	return cmp.Compare(x.name, y.name)
}

// preview reports what is wrong with the unit or the times of a schedule. The error is that of
// asking.
func (f *schedulesFile) preview(ctx context.Context, server *client.Client, wanted wantedSchedule, units []api.Unit) error {
	pointer := "/" + strictjson.Escape(wanted.name)
	i := slices.IndexFunc(units, func(u api.Unit) bool { return u.Name == wanted.spec.Unit })
	switch {
	case i < 0:
		f.report(pointer+"/unit", "`aod units` lists what the server has", "%s: there is no unit %s", wanted.name, fault.Quote(wanted.spec.Unit))
	case units[i].Disabled:
		f.report(pointer+"/unit", "aod units enable "+wanted.spec.Unit, "%s: the unit %s is disabled", wanted.name, fault.Quote(wanted.spec.Unit))
	}
	times, err := server.PreviewTimes(ctx, wanted.spec, 1)
	if err == nil && len(times) == 0 {
		f.report(pointer, "name a later time", "%s: it would never come", wanted.name)
	}
	if !fault.Is(err, fault.Input) {
		return err
	}
	public := fault.Public(err)
	if len(public.Findings) == 0 {
		f.report(pointer, public.Hint, "%s: %s", wanted.name, public.Msg)
	}
	for _, found := range public.Findings {
		f.report(pointer+found.Pointer, found.Hint, "%s: %s", wanted.name, found.Message)
	}
	return nil
}

// within says which schedule of the file a server's refusal is about.
func (f *schedulesFile) within(name string, err error) error {
	public := *fault.Public(err)
	line := f.doc.LineAt("/" + strictjson.Escape(name))
	public.Msg = fmt.Sprintf("%s:%d: %s: %s", f.doc.File, max(line, 1), name, public.Msg)
	return &public
}
