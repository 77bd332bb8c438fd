package main

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
)

const (
	// completeTime bounds the wait of a person who pressed the key.
	completeTime = time.Second
	// maxCompleted bounds what is offered.
	maxCompleted = 100
)

// completion offers words for the last one of a command line. It fails in silence: it has
// fewer words then.
type completion func(ctx context.Context, args []string, begun string) []cobra.Completion

// offer makes cobra's function of a completion. Where there is no word the shell offers files,
// unless the directive says otherwise.
func (a *app) offer(complete completion, directive cobra.ShellCompDirective) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		a.quiet = true
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

// completeCommands says what the arguments and flags of the commands are completed with.
func (a *app) completeCommands(root *cobra.Command) {
	const none = cobra.ShellCompDirectiveNoFileComp
	arguments := map[string]cobra.CompletionFunc{
		"units": a.offer(first(a.servedUnits), none), "cancel": a.offer(a.activeRuns, none),
	}
	for _, name := range []string{"run", "shell", "test", "build", "describe"} {
		arguments[name] = a.offer(first(a.completeUnits), cobra.ShellCompDirectiveDefault)
	}
	for _, name := range []string{"runs", "logs", "rerun", "diff", "apply"} {
		arguments[name] = a.offer(first(a.allRuns), none)
	}
	flags := map[string]cobra.CompletionFunc{
		"set":  a.offer(a.setFields, none|cobra.ShellCompDirectiveNoSpace),
		"file": a.offer(a.fileFields, cobra.ShellCompDirectiveNoSpace),
		"unit": a.offer(a.servedUnits, none), "state": a.offer(states, none), "case": a.offer(a.caseNames, none),
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

// completeUnits offers those in the directories of --units and those of the server. What has a
// separator in it is a path, which the shell knows.
func (a *app) completeUnits(ctx context.Context, _ []string, begun string) []cobra.Completion {
	if strings.ContainsRune(begun, filepath.Separator) {
		return nil
	}
	names := a.servedUnits(ctx, nil, begun)
	for _, place := range a.units {
		names = append(names, a.unitsIn(ctx, place)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (a *app) unitsIn(ctx context.Context, place string) []cobra.Completion {
	entries, _ := os.ReadDir(place) // what can't be read has no units
	var names []cobra.Completion
	for _, entry := range entries {
		if ctx.Err() != nil {
			break
		}
		if c, err := capsule.Load(filepath.Join(place, entry.Name())); err == nil {
			names = append(names, c.Name)
		}
	}
	return names
}

func (a *app) servedUnits(ctx context.Context, _ []string, _ string) []cobra.Completion {
	server, err := a.connect()
	if err != nil {
		return nil
	}
	units, _ := server.Units(ctx) // none after an error
	var names []cobra.Completion
	for _, unit := range units {
		names = append(names, unit.Name)
	}
	return names
}

func (a *app) allRuns(ctx context.Context, _ []string, _ string) []cobra.Completion {
	var past []api.Summary
	if a.server == "" {
		past = a.pastRuns(api.Filter{})
	}
	served, _ := a.serverRuns(ctx, api.Filter{Limit: maxCompleted}, maxCompleted) // none after an error
	return runWords(newestFirst(past, served))
}

func (a *app) activeRuns(ctx context.Context, _ []string, _ string) []cobra.Completion {
	served, _ := a.serverRuns(ctx, api.Filter{Active: true, Limit: maxCompleted}, maxCompleted) // none after an error
	return runWords(served)
}

// runWords are the ids of runs, with what a person knows them by.
func runWords(runs []api.Summary) []cobra.Completion {
	var words []cobra.Completion
	for _, run := range runs {
		about := cell(run.Unit) + " " + cell(string(run.State.Status())) + ", " + ageText(time.Since(run.CreatedAt)) +
			" ago"
		words = append(words, cobra.CompletionWithDesc(cell(run.ID), about))
	}
	return words
}

// fieldsOf returns the input fields of the unit that the command line names.
func (a *app) fieldsOf(ctx context.Context, args []string) []contract.Field {
	if len(args) == 0 {
		return nil
	}
	about, err := a.describe(ctx, args[0])
	if err != nil {
		return nil
	}
	return about.Input
}

// setFields are fields with their "=", and behind that the values which a field may have.
func (a *app) setFields(ctx context.Context, args []string, begun string) []cobra.Completion {
	name, _, valued := strings.Cut(begun, "=")
	var words []cobra.Completion
	for _, field := range a.fieldsOf(ctx, args) {
		switch {
		case field.IsFile():
		case !valued:
			words = append(words, cobra.CompletionWithDesc(field.Name+"=", cell(cmp.Or(field.Description, field.Type))))
		case field.Name == name:
			words = append(words, valueWords(field)...)
		}
	}
	return words
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
			text = jsonText(value)
		}
		words = append(words, field.Name+"="+cell(text))
	}
	return words
}

// fileFields are the fields for --file. Behind the "=" the shell offers files.
func (a *app) fileFields(ctx context.Context, args []string, _ string) []cobra.Completion {
	var words []cobra.Completion
	for _, field := range a.fieldsOf(ctx, args) {
		if field.IsFile() {
			words = append(words, cobra.CompletionWithDesc(field.Name+"=", cell(cmp.Or(field.Description, field.Type))))
		}
	}
	return words
}

func states(context.Context, []string, string) []cobra.Completion {
	return []cobra.Completion{"queued", "starting", "running", "completed", "failed", "timeout", "cancelled"}
}

// caseNames are the test cases of the unit that the command line names.
func (a *app) caseNames(_ context.Context, args []string, _ string) []cobra.Completion {
	if len(args) == 0 {
		return nil
	}
	c, err := a.load(args[0])
	if err != nil {
		return nil
	}
	cases, _ := c.Cases() // none after an error
	var names []cobra.Completion
	for _, test := range cases {
		names = append(names, test.Name)
	}
	return names
}
