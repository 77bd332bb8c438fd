// Package capsules is the work on a directory: `aod init`, `aod build`, `aod shell`. It must not know the root command.
//
// Its Go API may change with every release: see docs/stability.md.
package capsules

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/scaffold"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// InitCommand is `aod init`.
func InitCommand(env *cli.Env) *cobra.Command {
	var template string
	cmd := &cobra.Command{
		Use:   "init NAME",
		Short: "Make a capsule that runs as it is",
		Long: "Make the directory NAME with every file of a capsule, ready to run, and test cases. A flow's units " +
			"are\nmade beside it.\n\nTemplates:\n" + templateList(),
		Example: `  aod init word-count
  aod init clean-csv --template files
  aod init ./capsules/answer --template ai
  aod init refund --template flow`,
		Args: cli.Exactly(1, "one name"),
		RunE: func(_ *cobra.Command, args []string) error { return create(env, args[0], template) },
	}
	cmd.Flags().StringVarP(&template, "template", "t", scaffold.Templates()[0].Name, "what to start from")
	_ = cmd.RegisterFlagCompletionFunc("template",
		cobra.FixedCompletions(templateNames(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func create(env *cli.Env, path, template string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the directory %q can't be made", filepath.Dir(path))
	}
	files, err := scaffold.Write(filepath.Dir(path), filepath.Base(path), template)
	if err != nil {
		return err
	}
	for _, f := range files {
		env.Note("%s %s", env.Err.Style(ui.Green, "+"), f)
	}
	dir := "." + string(filepath.Separator) + filepath.Clean(path)
	if filepath.IsAbs(path) {
		dir = path
	}
	return noteNext(env, dir, template)
}

// noteNext says what to do with a new unit. A test needs no model's key.
func noteNext(env *cli.Env, dir, template string) error {
	t, err := scaffold.Find(template)
	if err != nil {
		return err
	}
	next := []string{"aod test " + dir, "aod run " + dir}
	if t.File == "" && t.Sample != "" {
		sample := filepath.Join(dir, t.Sample)
		next = []string{next[0], "aod au run " + dir + " --stdin " + sample, "aod au check " + dir}
	}
	if t.File != "" {
		next[1] += " --file " + t.File + "=" + filepath.Join(dir, t.Sample)
	}
	if t.Value != "" {
		next[1] += fmt.Sprintf(" --set %q", t.Value)
	}
	if t.Message != "" {
		next[1] = fmt.Sprintf("aod agent run %s -m %q", dir, t.Message)
	}
	if t.Beside != nil {
		next = slices.Insert(next, 0, "aod flow show "+dir)
	}
	env.Note("\nNext:  %s", strings.Join(next, "\n       "))
	return nil
}

func templateNames() []string {
	var names []string
	for _, t := range scaffold.Templates() {
		names = append(names, t.Name)
	}
	return names
}

func templateList() string {
	var list strings.Builder
	for _, t := range scaffold.Templates() {
		list.WriteString("  " + t.Name + strings.Repeat(" ", max(1, 8-len(t.Name))) + t.Description + "\n")
	}
	return strings.TrimRight(list.String(), "\n")
}
