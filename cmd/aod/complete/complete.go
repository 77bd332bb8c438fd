// Package complete offers a shell the words of a command line. It must not know the root command.
//
// Its Go API may change with every release: see docs/stability.md.
package complete

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/describe"
	"github.com/agent-on-demand/aod/cmd/aod/lookup"
	"github.com/agent-on-demand/aod/cmd/aod/runlist"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

const (
	// completeTime bounds the wait of a person who pressed the key.
	completeTime = time.Second
	// maxCompleted bounds what is offered.
	maxCompleted = 100
)

// completer finds the words of a person's machine and server.
type completer struct{ env *cli.Env }

// Units completes the first argument by the names of units.
func Units(env *cli.Env) cobra.CompletionFunc {
	return First(env, completer{env}.units, cobra.ShellCompDirectiveDefault)
}

// First completes the first argument alone.
func First(env *cli.Env, complete completion, directive cobra.ShellCompDirective) cobra.CompletionFunc {
	return completer{env}.offer(first(complete), directive)
}

// Commands says what the arguments and flags of the commands are completed with.
func Commands(env *cli.Env, root *cobra.Command) { completer{env}.commands(root) }

// completion offers words for the last one of a command line. It fails in silence: it has
// fewer words then.
type completion func(ctx context.Context, args []string, begun string) []cobra.Completion

// offer makes cobra's function of a completion. Where there is no word the shell offers files,
// unless the directive says otherwise.
func (c completer) offer(complete completion, directive cobra.ShellCompDirective) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		c.env.Quiet = true
		parent := cmd.Context()
		if parent == nil {
			parent = context.Background()
		}
		ctx, cancel := context.WithTimeout(parent, completeTime)
		defer cancel()
		var words []cobra.Completion
		for _, word := range complete(ctx, args, begun) {
			if strings.HasPrefix(word, begun) && len(words) < maxCompleted {
				words = append(words, word)
			}
		}
		return words, directive
	}
}

// commands says what the arguments and flags of the commands are completed with.
func (c completer) commands(root *cobra.Command) {
	const none = cobra.ShellCompDirectiveNoFileComp
	arguments := map[string]cobra.CompletionFunc{
		"units": c.offer(first(c.servedUnits), none), "chat": c.offer(first(c.servedUnits), none),
		"cancel": c.offer(c.activeRuns, none),
	}
	for _, name := range []string{"run", "shell", "test", "build", "describe"} {
		arguments[name] = c.offer(first(c.units), cobra.ShellCompDirectiveDefault)
	}
	for _, name := range []string{"runs", "logs", "rerun", "diff", "apply"} {
		arguments[name] = c.offer(first(c.allRuns), none)
	}
	flags := map[string]cobra.CompletionFunc{
		"set":  c.offer(c.setFields, none|cobra.ShellCompDirectiveNoSpace),
		"file": c.offer(c.fileFields, cobra.ShellCompDirectiveNoSpace),
		"unit": c.offer(c.servedUnits, none), "state": c.offer(states, none), "case": c.offer(c.caseNames, none),
	}
	for _, cmd := range root.Commands() {
		if complete, known := arguments[cmd.Name()]; known {
			cmd.ValidArgsFunction = complete
		}
		for name, complete := range flags {
			if cmd.Flags().Lookup(name) != nil {
				_ = cmd.RegisterFlagCompletionFunc(name, complete) // each flag is there, and registered once
			}
		}
	}
}

// first completes the first argument alone.
func first(complete completion) completion {
	return func(ctx context.Context, args []string, begun string) []cobra.Completion {
		if len(args) > 0 {
			return nil
		}
		return complete(ctx, args, begun)
	}
}

// units offers those in the directories of --units and those of the server. What has a
// separator in it is a path, which the shell knows.
func (c completer) units(ctx context.Context, _ []string, begun string) []cobra.Completion {
	if strings.ContainsRune(begun, filepath.Separator) {
		return nil
	}
	names := c.servedUnits(ctx, nil, begun)
	for _, place := range c.env.Units {
		names = append(names, c.unitsIn(ctx, place)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (c completer) unitsIn(ctx context.Context, place string) []cobra.Completion {
	entries, _ := os.ReadDir(place) // what can't be read has no units
	var names []cobra.Completion
	for _, entry := range entries {
		if ctx.Err() != nil {
			break
		}
		if name := capsule.NameOf(filepath.Join(place, entry.Name())); name != "" { // more isn't read for a key
			names = append(names, name)
		}
	}
	return names
}

func (c completer) servedUnits(ctx context.Context, _ []string, _ string) []cobra.Completion {
	server, err := c.env.Connect()
	if err != nil {
		return nil
	}
	units, _ := server.Units.List(ctx) // none after an error
	var names []cobra.Completion
	for _, unit := range units {
		names = append(names, unit.Name)
	}
	return names
}

func (c completer) allRuns(ctx context.Context, _ []string, _ string) []cobra.Completion {
	var past []api.Summary
	if c.env.Server == "" {
		past = runlist.Kept(c.env, api.Filter{})
	}
	served, _ := runlist.Served(ctx, c.env, api.Filter{Limit: maxCompleted}, maxCompleted) // none after an error
	return runWords(runlist.NewestFirst(past, served))
}

func (c completer) activeRuns(ctx context.Context, _ []string, _ string) []cobra.Completion {
	active := api.Filter{Active: true, Limit: maxCompleted}
	served, _ := runlist.Served(ctx, c.env, active, maxCompleted) // none after an error
	return runWords(served)
}

// runWords are the ids of runs, with what a person knows them by.
func runWords(runs []api.Summary) []cobra.Completion {
	var words []cobra.Completion
	for _, run := range runs {
		about := ui.Cell(run.Unit) + " " + ui.Cell(string(run.State.Status())) + ", " +
			ui.Age(time.Since(run.CreatedAt)) + " ago"
		words = append(words, cobra.CompletionWithDesc(ui.Cell(run.ID), about))
	}
	return words
}

// fieldsOf returns the input fields of the unit that the command line names.
func (c completer) fieldsOf(ctx context.Context, args []string) []contract.Field {
	if len(args) == 0 {
		return nil
	}
	about, err := describe.Unit(ctx, c.env, args[0])
	if err != nil {
		return nil
	}
	return about.Input
}

// setFields are fields with their "=", and behind that the values which a field may have.
func (c completer) setFields(ctx context.Context, args []string, begun string) []cobra.Completion {
	name, _, valued := strings.Cut(begun, "=")
	var words []cobra.Completion
	for _, field := range c.fieldsOf(ctx, args) {
		switch {
		case field.IsFile():
		case !valued:
			words = append(words, fieldWord(field))
		case field.Name == name:
			words = append(words, valueWords(field)...)
		}
	}
	return words
}

// fieldWord is a field with its "=".
func fieldWord(field contract.Field) cobra.Completion {
	return cobra.CompletionWithDesc(field.Name+"=", ui.Cell(cmp.Or(field.Description, field.Type)))
}

func valueWords(field contract.Field) []cobra.Completion {
	values := field.Choices
	if field.Type == "boolean" && values == nil {
		values = []any{true, false}
	}
	var words []cobra.Completion
	for _, value := range values {
		text, isText := value.(string)
		if !isText {
			text = ui.JSON(value)
		}
		words = append(words, field.Name+"="+ui.Cell(text))
	}
	return words
}

// fileFields are the fields for --file. Behind the "=" the shell offers files.
func (c completer) fileFields(ctx context.Context, args []string, _ string) []cobra.Completion {
	var words []cobra.Completion
	for _, field := range c.fieldsOf(ctx, args) {
		if field.IsFile() {
			words = append(words, fieldWord(field))
		}
	}
	return words
}

func states(context.Context, []string, string) []cobra.Completion {
	return []cobra.Completion{"queued", "starting", "running", "completed", "failed", "timeout", "cancelled"}
}

// caseNames are the test cases of the unit that the command line names.
func (c completer) caseNames(_ context.Context, args []string, _ string) []cobra.Completion {
	if len(args) == 0 {
		return nil
	}
	unit, err := lookup.Load(c.env, args[0])
	if err != nil {
		return nil
	}
	cases, _ := unit.Cases() // none after an error
	var names []cobra.Completion
	for _, test := range cases {
		names = append(names, test.Name)
	}
	return names
}
