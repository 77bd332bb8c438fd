package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
)

func (a *app) tokenRemoveCommand() *cobra.Command {
	var stop bool
	cmd := &cobra.Command{
		Use:   "rm NAME",
		Short: "Revoke a token, and stop what was made with it",
		Long: `Revoke a token. Its next request is refused, and a server that runs ends the streams that are
open with it within some seconds. Its runs, sessions and schedules go on: those are counted, and
--stop ends the runs, closes the sessions and pauses the schedules, also of one that was revoked
before.`,
		Example: "  aod token rm ci\n  aod token rm ci --stop",
		Args:    exactly(1, "the name of a token"),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := namedTokens(a.home()).Remove(args[0])
			if err != nil && (!stop || !fault.Is(err, fault.NotFound)) {
				return err
			}
			if err == nil {
				a.note("%s is revoked", printable(args[0]))
			}
			return a.leftBy(cmd.Context(), args[0], stop)
		},
	}
	cmd.Flags().BoolVar(&stop, "stop", false, "end its runs, close its sessions and pause its schedules")
	return cmd
}

// leftovers are what goes on that was made with a token.
type leftovers struct {
	runs, sessions, schedules []string // ids, and names of schedules
}

func (l leftovers) text() string {
	var parts []string
	for _, part := range []struct {
		of   []string
		noun string
	}{{l.runs, "run"}, {l.sessions, "session"}, {l.schedules, "schedule"}} {
		if len(part.of) > 0 {
			parts = append(parts, plural(len(part.of), part.noun))
		}
	}
	return strings.Join(parts, ", ")
}

// leftBy tells what goes on that was made with a revoked token, and stops it.
func (a *app) leftBy(ctx context.Context, name string, stop bool) error {
	address, err := a.localServer()
	if fault.Is(err, fault.Unavailable) && !stop {
		a.note("no server runs here: what was made with it goes on when one does, unless --stop stops it then")
		return nil
	}
	if err != nil {
		return err
	}
	server, err := client.New(client.Options{
		Server:    address,
		TokenFrom: func() (string, error) { return a.token(address) },
	})
	if err != nil {
		return err
	}
	left, err := findLeft(ctx, server, name)
	switch {
	case err != nil:
		return err
	case left.text() == "":
		a.note("nothing goes on that was made with it")
	case !stop:
		a.note("%s made with it: `aod token rm %s --stop` stops what goes on", left.text(), printable(name))
	default:
		if err := left.stop(ctx, server, name); err != nil {
			return err
		}
		a.note("stopped %s made with it", left.text())
	}
	return nil
}

// findLeft finds what goes on that was made with a token. A call ends with its caller, and a turn
// with its session.
func findLeft(ctx context.Context, server *client.Client, by string) (left leftovers, err error) {
	for schedule, err := range server.Schedules(ctx) {
		if err != nil {
			return left, err
		}
		if schedule.By == by && schedule.State != api.SchedulePaused && schedule.State != api.ScheduleEnded {
			left.schedules = append(left.schedules, schedule.Name)
		}
	}
	for session, err := range server.Sessions(ctx, client.SessionFilter{Open: true}) {
		if err != nil {
			return left, err
		}
		if session.By == by {
			left.sessions = append(left.sessions, session.ID)
		}
	}
	for run, err := range server.Runs(ctx, api.Filter{Active: true}) {
		if err != nil {
			return left, err
		}
		if run.By == by && run.Parent == "" {
			left.runs = append(left.runs, run.ID)
		}
	}
	return left, nil
}

// stop stops all: the schedules first, so that none starts another run meanwhile. What has ended by
// itself needn't be stopped.
func (l leftovers) stop(ctx context.Context, server *client.Client, by string) error {
	for _, name := range l.schedules {
		if _, err := server.PauseSchedule(ctx, name); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	for _, id := range l.sessions {
		if _, err := server.CloseSession(ctx, id); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	for _, id := range l.runs {
		_, err := server.Cancel(ctx, id, "the token "+by+" was revoked")
		if err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Conflict) {
			return err
		}
	}
	return nil
}
