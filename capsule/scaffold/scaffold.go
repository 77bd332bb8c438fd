// Package scaffold writes new capsules from templates that are embedded in it. Each runs as
// it is, and has test cases.
//
// It knows nothing of how a capsule is read or run.
//
// Its Go API may change with every release: see docs/stability.md.
package scaffold

import (
	"embed"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

//go:embed all:templates
var templates embed.FS

// Template is a unit to start from.
type Template struct {
	Name, Description string
	// File is a field of the input that needs a file, and Sample one, relative to the
	// capsule. Value is a field that needs a value, with one: NAME=VALUE. All are empty where
	// the unit runs without any input. An Agentic Unit has a Sample alone, for its stdin.
	File, Sample, Value string
	Message             string // of a wrapped agent: one that it answers; "" of others
	// Beside are the units that it calls: by the ending of their names, the templates that
	// they are made of. Only a flow has some.
	Beside map[string]string
}

// Templates lists what Write can write, the simplest first.
func Templates() []Template {
	return []Template{
		{Name: "basic", Description: "JSON in, JSON out: counts the words of a text"},
		{
			Name: "files", Description: "a file in, a file out: cleans a CSV", File: "table",
			Sample: "tests/data/orders.csv",
		},
		{Name: "ai", Description: "software first, AI second: sorts a support message, by rules or by a model"},
		{Name: "agent", Description: "no code: a model answers a question about a text, and keeps the contract"},
		{
			Name: "flow", Description: "a graph: two units in a row, and a person who decides",
			Value: "message=I was charged twice", Beside: map[string]string{"-words": "basic", "-sort": "ai"},
		},
		{
			Name: "cli", Description: "a CLI agent that there is, wrapped: counts the words of a message",
			Message: "one two three",
		},
		{
			Name: "au", Description: "an Agentic Unit, bytes in, JSON out: counts the words of a text",
			Sample: "tests/data/fox.txt",
		},
	}
}

// Find returns a template, or an Input fault that lists those that there are.
func Find(name string) (Template, error) {
	var names []string
	for _, t := range Templates() {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return Template{}, fault.New(fault.Input, "there is no template %s", fault.Quote(name)).
		WithHint("choose one of: %s", strings.Join(names, ", "))
}

// Write writes a capsule that runs as it is into the directory name below parent, and the
// units that its template has beside it into directories of their own. It returns the files
// that it wrote, relative to parent and sorted. The error is an Input fault for a name or a
// template that can't be, or a directory that isn't empty: nothing is ever overwritten. When
// it fails halfway, it takes away what it wrote.
func Write(parent, name, template string) (files []string, err error) {
	t, err := Find(template)
	if err != nil {
		return nil, err
	}
	var made []*writer
	defer func() { closeAll(made, err != nil) }()
	for _, u := range t.units(name) {
		w, err := newWriter(parent, u.name)
		if err != nil {
			return nil, err
		}
		made = append(made, w)
		if err := w.copy(u.template); err != nil {
			return nil, fault.Wrap(fault.Capsule, err, "%s can't be written: %s", filepath.Join(parent, u.name),
				safefs.Reason(err)).
				WithHint("look at the directory's permissions and the free space")
		}
		for _, f := range w.files {
			files = append(files, filepath.Join(u.name, filepath.FromSlash(f)))
		}
	}
	slices.Sort(files)
	return files, nil
}

// newUnit is a unit to write, and what it is made of.
type newUnit struct{ name, template string }

// units are the unit of a template and those beside it, in the order of their names.
func (t Template) units(name string) []newUnit {
	units := []newUnit{{name, t.Name}}
	for _, ending := range slices.Sorted(maps.Keys(t.Beside)) {
		units = append(units, newUnit{name + ending, t.Beside[ending]})
	}
	return units
}

// newDir makes a directory, or takes one that is empty.
func newDir(dir string) (*os.Root, error) {
	err := os.Mkdir(dir, 0o777)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.Wrap(fault.NotFound, err, "there is no directory %s", filepath.Dir(dir)).
			WithHint("create it first")
	case err != nil && !errors.Is(err, fs.ErrExist):
		return nil, fault.Wrap(fault.Capsule, err, "%s can't be created: %s", dir, safefs.Reason(err)).
			WithHint("look at the permissions of %s", filepath.Dir(dir))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fault.Wrap(fault.Input, err, "%s can't be used as a directory: %s", dir, safefs.Reason(err)).
			WithHint("choose another name")
	}
	there, err := fs.ReadDir(root.FS(), ".")
	if err != nil || len(there) > 0 {
		_ = root.Close()
		return nil, fault.New(fault.Input, "%s exists and isn't empty", dir).
			WithHint("choose another name, or empty the directory; nothing is overwritten")
	}
	return root, nil
}

// writer copies a template into a directory and remembers what it made.
type writer struct {
	root  *os.Root
	name  string
	files []string
	made  []string // files and directories, in order
}

func newWriter(parent, name string) (*writer, error) {
	if err := api.CheckUnitName(name); err != nil {
		return nil, err
	}
	root, err := newDir(filepath.Join(parent, name))
	return &writer{root: root, name: name}, err
}

func (w *writer) copy(template string) error {
	from, err := fs.Sub(templates, "templates/"+template)
	if err != nil {
		return err
	}
	return fs.WalkDir(from, ".",
		func(name string, d fs.DirEntry, err error) error { return w.visit(from, name, d, err) })
}

// closeAll closes the directories of writers, and undoes what they made if so asked.
func closeAll(writers []*writer, undo bool) {
	for _, w := range writers {
		if undo {
			w.undo()
		}
		_ = w.root.Close()
	}
}

func (w *writer) visit(from fs.FS, name string, d fs.DirEntry, err error) error {
	if err != nil || name == "." {
		return err
	}
	if d.IsDir() {
		if err := w.root.Mkdir(name, 0o777); err != nil {
			return err
		}
		w.made = append(w.made, name)
		return nil
	}
	raw, err := fs.ReadFile(from, name)
	if err != nil {
		return err
	}
	w.files = append(w.files, name)
	return w.write(name, withSchema(name, strings.ReplaceAll(string(raw), "{{NAME}}", w.name)))
}

// schemasAt is where editors find the schemas.
const schemasAt = "https://raw.githubusercontent.com/agent-on-demand/aod/main/schemas/"

// withSchema tells editors which schema a file keeps, as the format allows.
func withSchema(name, text string) string {
	schema, isYAML := strings.CutSuffix(name, ".yaml")
	if isYAML && slices.Contains([]string{"agent", "tools", "flow"}, schema) {
		return "# yaml-language-server: $schema=" + schemasAt + schema + ".schema.json\n" + text
	}
	if isCase, _ := path.Match("tests/*.json", name); isCase {
		return strings.Replace(text, "{\n", "{\n  \"$schema\": \""+schemasAt+"testcase.schema.json\",\n", 1)
	}
	return text
}

func (w *writer) write(name, text string) error {
	f, err := w.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	w.made = append(w.made, name)
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// undo removes what was made, the last first; the directory itself stays, empty.
func (w *writer) undo() {
	for i := len(w.made) - 1; i >= 0; i-- {
		_ = w.root.Remove(w.made[i])
	}
}
