// Package changes is `aod diff` and `aod apply`: what an agent changed in its workspace. It must not know the root
// command.
//
// Its Go API may change with every release: see docs/stability.md.
package changes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/runlist"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
	"github.com/agent-on-demand/aod/internal/workspace"
)

// DiffFlags say how changes are shown.
type DiffFlags struct{ patch, stat, json bool }

// DiffCommand is `aod diff`.
func DiffCommand(env *cli.Env) *cobra.Command {
	var flags DiffFlags
	cmd := &cobra.Command{
		Use:   "diff RUN|SESSION",
		Short: "Show what an agent changed in its workspace",
		Long: `Show what a run made of the files that --workspace gave it: first what a person should look at,
such as new executables, CI files, hooks, hidden files and what looks like a key. Of a session it is
what its turns made so far. Without --server the last runs of aod run on this machine are known,
too. aod apply brings the changes back.`,
		Example: "  aod diff 0198c0de-…\n  aod diff 0198c0de-… --patch | less\n" +
			"  aod diff 0198c0de-… --patch | git apply -3",
		Args: cli.Exactly(1, "the id of a run or a session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return Diff(cmd.Context(), env, args[0], flags)
		},
	}
	cmd.Flags().BoolVarP(&flags.patch, "patch", "p", false, "print the changes as a patch in git's format")
	cmd.Flags().BoolVar(&flags.stat, "stat", false, "print the sums alone")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print the list of changes as JSON")
	return cmd
}

// changesOf has what a run changed.
type changesOf struct {
	id      string
	dir     string         // of a run of this machine
	server  *client.Client // of another run
	session string         // whose turn it is; "": none's
	listed  []byte         // of the turns of a session up to this run; nil: it isn't one of those
}

// changes finds a run on this machine, or a run or a session on a server.
func changes(ctx context.Context, env *cli.Env, id string) (changesOf, error) {
	past, server, err := runlist.Find(env, id)
	switch {
	case err != nil:
		return changesOf{}, err
	case server == nil && past.Record.Changes == nil:
		return changesOf{}, fault.New(fault.NotFound, "the run %s has no changes", id).
			WithHint("it has them if it got --workspace, and its agent.yaml says access: read-write, or " +
				"workspace.write: true")
	case server == nil:
		return changesOf{id: id, dir: runlist.History(env).ChangesDir(id)}, nil
	}
	if _, err := server.Sessions.Get(ctx, id); err != nil { // then it is a run, or the server says what is wrong
		record, err := server.Runs.Get(ctx, id)
		return changesOf{id: id, server: server, session: record.Session}, err
	}
	turn, listed, err := server.Changes.OfSession(ctx, id)
	return changesOf{id: turn, server: server, session: id, listed: listed}, err
}

// maxEarlier bounds how many turns of a session are looked at.
const maxEarlier = 200

// earlier returns what the newest turns of the session made of its workspace, each of them. What was
// removed of them is left out.
func (c changesOf) earlier(ctx context.Context) (made []api.Change, err error) {
	left := maxEarlier
	for turn, err := range c.server.Runs.List(ctx, api.Filter{Session: c.session}) {
		if left--; err != nil || left < 0 {
			return made, err
		}
		raw, err := c.server.Changes.List(ctx, turn.ID)
		if fault.KindOf(err) == fault.NotFound || fault.KindOf(err) == fault.Conflict {
			continue
		}
		if err != nil {
			return nil, err
		}
		found, err := workspace.ReadChanges(raw)
		if err != nil {
			return nil, err
		}
		made = append(made, found.Changes...)
	}
	return made, nil
}

func (c changesOf) list(ctx context.Context) (api.Changes, error) {
	if c.server == nil {
		raw, err := os.ReadFile(filepath.Join(c.dir, workspace.ChangesName))
		if errors.Is(err, fs.ErrNotExist) {
			return api.Changes{}, fault.New(fault.NotFound, "the changes of the run %s were too large to be kept",
				c.id).
				WithHint("run it on a server: aod serve")
		}
		if err != nil {
			return api.Changes{}, fault.Wrap(fault.Internal, err, "the run's changes can't be read")
		}
		return workspace.ReadChanges(raw)
	}
	if c.listed != nil {
		return workspace.ReadChanges(c.listed)
	}
	raw, err := c.server.Changes.List(ctx, c.id)
	if err != nil {
		return api.Changes{}, err
	}
	return workspace.ReadChanges(raw)
}

func (c changesOf) patch(ctx context.Context, w io.Writer) error {
	if c.server != nil {
		return c.server.Changes.Patch(ctx, c.id, w)
	}
	f, err := os.Open(filepath.Join(c.dir, workspace.PatchName))
	if err != nil {
		return fault.Wrap(fault.NotFound, err, "the changes of the run %s were too large to be kept", c.id)
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// open returns the new content of a changed file.
func (c changesOf) open(ctx context.Context) func(api.Change) (io.ReadCloser, error) {
	return func(change api.Change) (io.ReadCloser, error) {
		if c.server == nil {
			f, err := os.Open(filepath.Join(c.dir, workspace.ContentsName, filepath.FromSlash(change.Path)))
			if err != nil {
				return nil, fault.Wrap(fault.NotFound, err, "the changes of the run %s can't be read any more", c.id).
					WithHint("was something below %s removed?", c.dir)
			}
			return f, nil
		}
		in, out := io.Pipe()
		go func() { _ = out.CloseWithError(c.server.Changes.File(ctx, c.id, change, out)) }() // never fails
		return in, nil
	}
}

// Diff prints what a run or a session changed.
func Diff(ctx context.Context, env *cli.Env, id string, flags DiffFlags) error {
	of, err := changes(ctx, env, id)
	if err != nil {
		return err
	}
	if flags.patch {
		return env.Out.Foreign(func(w io.Writer) error { return of.patch(ctx, w) })
	}
	found, err := of.list(ctx)
	if err != nil {
		return err
	}
	if flags.json {
		return env.Out.JSON(found)
	}
	if !flags.stat {
		showMinds(env, found)
		for _, c := range found.Changes {
			mark := changeMarks[c.Op]
			env.Out.Line("%s %s%s", env.Out.Style(mark.colour, mark.sign), nameText(c.Path),
				env.Out.Style(ui.Dim, detailOf(c)))
		}
	}
	env.Out.Line("%s", sumOfChanges(found))
	for _, warning := range found.Warnings {
		env.Note("%s %s", env.Err.Style(ui.Yellow, "left out:"), ui.Printable(warning))
	}
	return nil
}

// showMinds prints what a person should look at first.
func showMinds(env *cli.Env, found api.Changes) {
	some := false
	for _, c := range found.Changes {
		if len(c.Mind) > 0 {
			some = true
			env.Out.Line("%s %s %s", env.Out.Style(ui.Red, "mind:"), nameText(c.Path),
				ui.Printable(strings.Join(c.Mind, "; ")))
		}
	}
	if some {
		env.Out.Line("")
	}
}

// changeMarks are how the ways of changing a file are shown.
var changeMarks = map[string]struct{ colour, sign string }{
	api.OpAdd: {ui.Green, "A"}, api.OpModify: {ui.Yellow, "M"}, api.OpDelete: {ui.Red, "D"},
}

func detailOf(c api.Change) string {
	detail := ""
	if c.Op != api.OpDelete {
		detail = " " + ui.Bytes(c.Size)
	}
	if c.ModeWas != "" {
		detail += fmt.Sprintf(" mode %s, was %s", c.Mode, c.ModeWas)
	}
	return detail
}

// sumOfChanges counts the changes, and says whether there may be more to come.
func sumOfChanges(found api.Changes) string {
	count := map[string]int{}
	var bytes int64
	for _, c := range found.Changes {
		count[c.Op]++
		bytes += c.Size
	}
	text := fmt.Sprintf("%s: %d added, %d modified, %d deleted, %s", ui.Plural(len(found.Changes), "change"),
		count[api.OpAdd], count[api.OpModify], count[api.OpDelete], ui.Bytes(bytes))
	if found.Partial {
		text += "; partial: the run failed or was stopped"
	}
	return text
}

// nameText returns the name of a file for a line of its own.
func nameText(name string) string { return strings.ReplaceAll(ui.Printable(name), "\n", `\n`) }
