package httpapi

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/spool"
)

// hostFile is a file of this host for a run.
type hostFile struct {
	field string // of the input, dotted; "": none
	label string // for messages: where it is named
	name  string // in /io/input
	path  string
}

// hostFiles takes files of this host for runs.
type hostFiles struct {
	roots  []string // directories that they may be in
	bodies bodies
	units  interface {
		Schema(ctx context.Context, unit string) ([]byte, error)
		HaveTeams() bool
	}
}

// take copies the files of this host that an execution names. It copies nothing
// from outside the roots, and omits no named file. The spool is nil if no file is named;
// the caller releases it.
func (h hostFiles) take(c echo.Context, asked execution) (*spool.Spool, error) {
	schema, err := h.units.Schema(c.Request().Context(), asked.unit)
	if err != nil {
		return nil, err
	}
	known, _ := contract.Parse(schema)
	if known == nil {
		return nil, nil // the Service will say what is wrong with the unit
	}
	files, err := hostFilesOf(known.Input, asked)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	if h.units.HaveTeams() && !access.ReachOf(c.Request().Context()).All { // a path says nothing of whose a file is
		return nil, fault.New(fault.Forbidden, "the file for %q may not be taken from this host", files[0].label).
			WithHint("this server has teams, and the files of its host are nobody's: send the file with POST /v1/runs")
	}
	copies, err := h.bodies.spools.NewSpool()
	if err != nil {
		return nil, err
	}
	if err := h.copyAll(copies, files); err != nil {
		h.bodies.release(c, copies)
		return nil, err
	}
	return copies, nil
}

func (h hostFiles) copyAll(copies *spool.Spool, files []hostFile) error {
	for _, f := range files {
		if err := h.copy(copies, f); err != nil {
			return err
		}
	}
	return nil
}

func (h hostFiles) copy(copies *spool.Spool, f hostFile) error {
	content, err := openUnder(h.roots, f)
	if err != nil {
		return err
	}
	defer content.Close()
	return copies.Add(f.field, f.name, content, h.bodies.upload)
}

// openUnder opens a regular file below one of the roots, following no link out of it.
func openUnder(roots []string, f hostFile) (*os.File, error) {
	for _, root := range roots {
		rel, err := filepath.Rel(root, f.path)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		content, err := openIn(root, rel)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fault.Wrap(fault.Input, err, "the file for %q is not there", f.label)
		}
		if err == nil {
			return content, nil
		}
		return nil, forbidden(f, err)
	}
	return nil, forbidden(f, nil)
}

func forbidden(f hostFile, err error) error {
	return fault.Wrap(fault.Forbidden, err, "the file for %q may not be taken from this host", f.label).
		WithHint("it must be a regular file in one of the directories of the setting `file_roots`, with no link on " +
			"the way out of it")
}

func openIn(root, rel string) (*os.File, error) {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	content, _, err := safefs.OpenInside(dir, rel)
	return content, err
}

// hostFilesOf lists the files that the input and `files` name, in the order of the input.
// Those of `files` that the input doesn't name go along under their names.
func hostFilesOf(schema *contract.Schema, asked execution) ([]hostFile, error) {
	var found []hostFile
	used := map[string]bool{}
	for _, ref := range asked.fileRefs(schema) {
		file, ok := asked.find(ref)
		if !ok {
			return nil, fault.New(fault.Input, "the input names a file that was not given").
				WithHint("give its path on the server's host in `files`").
				WithFindings([]fault.Finding{{Pointer: ref.pointer, Message: "names a file that was not given"}})
		}
		used[ref.name], used[ref.text] = true, true
		found = append(found, file)
	}
	for _, name := range slices.Sorted(maps.Keys(asked.files)) {
		if used[name] {
			continue
		}
		further := hostFile{label: name, name: name, path: asked.files[name]}
		if slices.Contains(schema.FileFields(), name) {
			further.field, further.name = name, filepath.Base(further.path)
		}
		found = append(found, further)
	}
	return found, nil
}

// fileRef is a string of the input that names a file.
type fileRef struct {
	pointer string
	text    string // as given
	name    string // clean; "" if the text can't be a name in /io/input
}

// fileRefs lists the strings that the contract calls a file, and what stands in `file` and
// `files`, where a file was given for any of it: other orchestrators take that for files
// whatever the contract says.
func (e execution) fileRefs(schema *contract.Schema) []fileRef {
	var refs []fileRef
	declared := map[string]bool{}
	for _, ref := range schema.FileRefs(e.input) {
		declared[ref.Pointer] = true
		text, _ := valueAt(e.input, ref.Pointer).(string)
		refs = append(refs, fileRef{ref.Pointer, text, ref.Name})
	}
	for _, field := range contract.CustomaryFields() {
		own := slices.DeleteFunc(e.elements(field), func(ref fileRef) bool { return declared[ref.pointer] })
		if slices.ContainsFunc(own, func(ref fileRef) bool { _, given := e.find(ref); return given }) {
			refs = append(refs, own...)
		}
	}
	return refs
}

// elements lists what stands in a field of the input, which may be a list. What isn't text
// names no file.
func (e execution) elements(field string) []fileRef {
	value, there := e.input.Get(field)
	if !there {
		return nil
	}
	list, isList := value.([]any)
	if !isList {
		return []fileRef{customaryRef("/"+field, value)}
	}
	refs := make([]fileRef, 0, len(list))
	for i, element := range list {
		refs = append(refs, customaryRef("/"+field+"/"+strconv.Itoa(i), element))
	}
	return refs
}

func customaryRef(pointer string, value any) fileRef {
	text, _ := value.(string)
	name, err := contract.CleanName(text, contract.StageInput)
	if err != nil {
		name = ""
	}
	return fileRef{pointer, text, name}
}

// find returns the host file of a reference.
func (e execution) find(ref fileRef) (hostFile, bool) {
	file := hostFile{field: fieldOf(ref.pointer), label: ref.pointer, name: ref.name}
	for _, name := range []string{ref.text, ref.name} {
		if at, ok := e.files[name]; ok && name != "" {
			file.path = at
		}
	}
	if file.path == "" && isHostPath(ref.text) {
		file.path = ref.text
	}
	if file.name == "" {
		file.name = filepath.Base(file.path)
	}
	return file, file.path != ""
}

// isHostPath tells a path of this host from a file's name and from a path in /io/input.
func isHostPath(text string) bool {
	return filepath.IsAbs(text) && !strings.HasPrefix(text, string(contract.StageInput)+"/")
}

// fieldOf turns a pointer into a dotted field. The files of a list belong to the list's
// field.
func fieldOf(pointer string) string {
	keys := keysOf(pointer)
	if last := len(keys) - 1; last > 0 && isIndex(keys[last]) {
		keys = keys[:last]
	}
	return strings.Join(keys, ".")
}

func isIndex(key string) bool {
	_, err := strconv.Atoi(key)
	return err == nil
}

var unescaped = strings.NewReplacer("~1", "/", "~0", "~")

func keysOf(pointer string) []string {
	keys := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i := range keys {
		keys[i] = unescaped.Replace(keys[i])
	}
	return keys
}

// valueAt returns the value at a pointer, or nil if there is none.
func valueAt(input contract.Payload, pointer string) any {
	keys := keysOf(pointer)
	value, _ := input.Get(keys[0])
	for _, key := range keys[1:] {
		switch v := value.(type) {
		case map[string]any:
			value = v[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}
