package schedules

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// scheduleApplyFlags say which file, and what becomes of what it doesn't name.
type scheduleApplyFlags struct {
	file               string
	prune, check, json bool
}

func applyCommand(env *cli.Env) *cobra.Command {
	var flags scheduleApplyFlags
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Give a server the schedules that a file says",
		Long: `Make and change schedules of a server, so that it has those that a YAML file says. What is as
the file says is left alone, so the command may be repeated. A schedule that the file doesn't
name stays, unless --prune removes it. Whatever is wrong with the file is told before anything is
changed. Paused schedules stay paused.`,
		Example: "  aod schedule apply -f schedules.yaml --check\n  aod schedule apply -f schedules.yaml --prune",
		Args:    cli.Exactly(0, "its file by -f, and no arguments"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return applySchedules(cmd.Context(), env, flags) },
	}
	cmd.Flags().StringVarP(&flags.file, "file", "f", "", "the file, or - for stdin")
	cmd.Flags().BoolVar(&flags.prune, "prune", false, "remove schedules that the file doesn't name")
	cmd.Flags().BoolVar(&flags.check, "check", false, "change nothing, and say what would be changed")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print a JSON object a schedule: its name and what became of it")
	return cmd
}

func applySchedules(ctx context.Context, env *cli.Env, flags scheduleApplyFlags) error {
	if flags.file == "" {
		return fault.New(fault.Input, "-f is missing: the file with the schedules").
			WithHint("see aod schedule apply --help")
	}
	file, err := openSchedules(flags.file, env.In)
	if err != nil {
		return err
	}
	server, err := env.Connect()
	if err != nil {
		return err
	}
	plan, err := planSchedules(ctx, server, file)
	if err != nil {
		return err
	}
	for _, step := range plan {
		if step.change == api.ScheduleRemoved && !flags.prune {
			env.Note("%s is not in the file; --prune removes it", ui.Printable(step.name))
			continue
		}
		if !flags.check {
			if err := step.take(ctx, server); err != nil {
				return file.within(step.name, err)
			}
		}
		if err := showStep(env, step, flags); err != nil {
			return err
		}
	}
	return nil
}

// scheduleStep is what is to become of a schedule.
type scheduleStep struct {
	wantedSchedule
	change api.ScheduleChange
}

func (s scheduleStep) take(ctx context.Context, server *client.Client) error {
	var err error
	switch s.change {
	case api.ScheduleMade, api.ScheduleChanged:
		_, _, err = server.Schedules.Put(ctx, s.name, s.spec, s.files)
	case api.ScheduleRemoved:
		err = server.Schedules.Delete(ctx, s.name)
	}
	return err
}

func showStep(env *cli.Env, s scheduleStep, flags scheduleApplyFlags) error {
	if flags.json {
		return env.Out.JSON(api.PlannedSchedule{Name: s.name, Change: s.change})
	}
	verb := string(s.change)
	if flags.check && s.change != api.ScheduleUnchanged {
		verb = "to be " + verb
	}
	env.Out.Line("%s %s", verb, ui.Printable(s.name))
	return nil
}

// planSchedules has a server say what is to become of each schedule of a file: what it would refuse
// is found here, before anything is changed. Removals come last.
func planSchedules(ctx context.Context, server *client.Client, file *schedulesFile) (plan []scheduleStep, err error) {
	var own []api.PlannedSchedule
	for _, wanted := range file.schedules { // by name
		would, err := server.Schedules.Try(ctx, wanted.name, wanted.spec, wanted.files)
		if err != nil && !isOfSchedule(err) {
			return nil, err
		}
		file.refuse(wanted.name, err)
		own = append(own, would)
		plan = append(plan, scheduleStep{wanted, would.Change})
	}
	gone, err := strangers(ctx, server, own)
	if err != nil {
		return nil, err
	}
	for _, name := range gone {
		plan = append(plan, scheduleStep{wantedSchedule{name: name}, api.ScheduleRemoved})
	}
	return plan, file.err()
}

// strangers returns the names of a server's schedules that a file doesn't name, in order: those of the teams whose are
// those that it names.
func strangers(ctx context.Context, server *client.Client, own []api.PlannedSchedule) (names []string, err error) {
	for s, err := range server.Schedules.List(ctx) {
		if err != nil {
			return nil, err
		}
		ours := len(own) == 0 && s.Owner == nil || slices.ContainsFunc(own, func(o api.PlannedSchedule) bool {
			return api.TeamOf(o.Owner) == api.TeamOf(s.Owner)
		})
		if ours && !slices.ContainsFunc(own, func(o api.PlannedSchedule) bool { return o.Name == s.Name }) {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// isOfSchedule reports whether a server's refusal is about one schedule, and others may be asked for.
func isOfSchedule(err error) bool {
	kinds := []fault.Kind{
		fault.Input, fault.BadRequest, fault.TooLarge, fault.Unsupported, fault.NotFound, fault.Disabled,
		fault.Conflict, fault.Capsule,
	}
	return slices.ContainsFunc(kinds, func(k fault.Kind) bool { return fault.Is(err, k) })
}

// refuse reports what a server says against a schedule; a nil error is nothing.
func (f *schedulesFile) refuse(name string, err error) {
	if err == nil {
		return
	}
	public, pointer := fault.Public(err), "/"+strictjson.Escape(name)
	for _, found := range public.Findings {
		f.report(pointer+found.Pointer, found.Hint, "%s: %s: %s", name, found.Pointer, found.Message)
	}
	if len(public.Findings) > 0 {
		return
	}
	if public.Kind == fault.NotFound || public.Kind == fault.Disabled {
		pointer += "/unit"
	}
	f.report(pointer, public.Hint, "%s: %s", name, public.Msg)
}

// within says which schedule of the file a server's refusal is about.
func (f *schedulesFile) within(name string, err error) error {
	public := *fault.Public(err)
	line := f.doc.LineAt("/" + strictjson.Escape(name))
	public.Msg = fmt.Sprintf("%s:%d: %s: %s", f.doc.File, max(line, 1), name, public.Msg)
	return &public
}
