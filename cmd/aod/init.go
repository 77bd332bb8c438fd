package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agent-on-demand/aod/capsule/scaffold"
	"github.com/agent-on-demand/aod/fault"
)

func (a *app) initCommand() *cobra.Command {
	var template string
	cmd := &cobra.Command{
		Use:   "init NAME",
		Short: "Make a capsule that runs as it is",
		Long:  "Make the directory NAME with every file of a capsule, ready to run, and a test case.\n\nTemplates:\n" + templateList(),
		Example: `  aod init word-count
  aod init clean-csv --template files
  aod init ./capsules/answer --template ai`,
		Args: exactly(1, "one name"),
		RunE: func(_ *cobra.Command, args []string) error { return a.scaffold(args[0], template) },
	}
	cmd.Flags().StringVarP(&template, "template", "t", scaffold.Templates()[0].Name, "what to start from")
	_ = cmd.RegisterFlagCompletionFunc("template", cobra.FixedCompletions(templateNames(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) scaffold(path, template string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the directory %q can't be made", filepath.Dir(path))
	}
	files, err := scaffold.Write(filepath.Dir(path), filepath.Base(path), template)
	if err != nil {
		return err
	}
	for _, f := range files {
		a.note("%s %s", a.stderr.style(green, "+"), f)
	}
	dir := "." + string(filepath.Separator) + filepath.Clean(path)
	if filepath.IsAbs(path) {
		dir = path
	}
	a.note("\nNext:  aod test %s\n       aod run %s%s", dir, dir, sampleFlag(dir, template)) // a test needs no model's key
	return nil
}

// sampleFlag returns the flag for the sample file of a template that needs a file.
func sampleFlag(dir, template string) string {
	for _, t := range scaffold.Templates() {
		if t.Name == template && t.File != "" {
			return " --file " + t.File + "=" + filepath.Join(dir, t.Sample)
		}
	}
	return ""
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
