package contract

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// FileRef is a string in a payload that the contract declares to name a file.
type FileRef struct {
	Pointer string // into the payload; a very long one is cut
	Text    string // what stands there
	Name    string // relative, with slashes, clean; "" with Err
	Err     error  // a *fault.Error that says why the name is refused

	path []string
}

// FileRefs lists the file references of a payload, taking the absolute form of any
// stage, each once, in the order of their pointers. A string that stands where any
// applicable part of the contract says file_path is one.
func (s *Schema) FileRefs(p Payload) []FileRef { return s.FileRefsAt(p, AnyStage) }

// FileRefsAt lists the file references of a payload at a stage: names in another
// stage's absolute form are refused. A payload too large to be walked, which
// Validate refuses, gives one reference with a TooLarge fault.
func (s *Schema) FileRefsAt(p Payload, stage Stage) []FileRef {
	var refs []FileRef
	seen := map[string]bool{}
	_, ok := walk(s.root, p.value(), func(n *node, v any, at *place) {
		text, isString := v.(string)
		if !n.filePath || !isString {
			return
		}
		path := at.path()
		exact := exactPointer(path)
		if seen[exact] {
			return
		}
		seen[exact] = true
		clean, err := CleanName(text, stage)
		refs = append(refs, FileRef{
			Pointer: strictjson.Pointer(path...), Text: text, Name: clean, Err: err,
			path: path,
		})
	})
	if !ok {
		return []FileRef{{Err: fault.New(fault.TooLarge, "the payload is too large for this contract").
			WithHint("send less in one call")}}
	}
	slices.SortStableFunc(refs, func(a, b FileRef) int { return cmp.Compare(a.Pointer, b.Pointer) })
	return refs
}

// CleanFiles lists the file references of a payload at a stage, and returns the payload
// with the clean name in the place of each text that stands for one. Where nothing has to
// change the payload is the same; else its fields are sorted by their names.
func (s *Schema) CleanFiles(p Payload, stage Stage) ([]FileRef, Payload, error) {
	refs := s.FileRefsAt(p, stage)
	unclean := slices.DeleteFunc(slices.Clone(refs),
		func(ref FileRef) bool { return ref.Err != nil || ref.Text == ref.Name })
	if len(unclean) == 0 {
		return refs, p, nil
	}
	clean, err := p.WithNames(unclean)
	return refs, clean, err
}

// CheckFiles reports each file reference that isn't a regular file under root, the
// directory of the stage. It opens nothing and follows no link, not even between
// directories: whatever else stands there is named for what it is. The directory may
// change afterwards, so whoever opens the files has to be as careful. At most
// MaxFindings are reported.
func (s *Schema) CheckFiles(p Payload, stage Stage, root *os.Root) []fault.Finding {
	var found []fault.Finding
	known := map[string]fault.Finding{} // by name: a payload may name one file often
	for _, ref := range s.FileRefsAt(p, stage) {
		f, ok := known[ref.Name]
		if !ok || ref.Err != nil {
			f = checkRef(ref, stage, root)
			known[ref.Name] = f
		}
		if f.Message == "" {
			continue
		}
		if len(found) == MaxFindings {
			return append(found, fault.Finding{Message: "there are more problems with files than these"})
		}
		f.Pointer = ref.Pointer
		found = append(found, f)
	}
	return found
}

// checkRef returns a finding with a message if the reference can't be followed.
func checkRef(ref FileRef, stage Stage, root *os.Root) fault.Finding {
	if ref.Err != nil {
		public := fault.Public(ref.Err)
		return fault.Finding{Message: public.Msg, Hint: public.Hint}
	}
	name := quote(ref.Name)
	parts := strings.Split(ref.Name, "/")
	for i := range parts {
		info, err := root.Lstat(strings.Join(parts[:i+1], "/"))
		switch last := i == len(parts)-1; {
		case errors.Is(err, fs.ErrNotExist):
			return fault.Finding{
				Message: fmt.Sprintf("names file %s, which is not in %s", name, stage),
				Hint:    missingHint(stage),
			}
		case err != nil:
			return fault.Finding{
				Message: fmt.Sprintf("names file %s, which can't be looked at in %s", name, stage),
				Hint:    "check the permissions of its directory",
			}
		case !last && !info.IsDir():
			return fault.Finding{
				Message: fmt.Sprintf("names file %s, but a directory on the way is %s", name, what(info.Mode())),
				Hint:    "use real directories: nothing else is followed",
			}
		case last && !info.Mode().IsRegular():
			return fault.Finding{
				Message: fmt.Sprintf("names file %s, which is %s, not a regular file", name, what(info.Mode())),
				Hint:    irregularHint(info.Mode(), stage),
			}
		}
	}
	return fault.Finding{}
}

func missingHint(stage Stage) string {
	if stage == StageInput || stage == StageIncoming {
		return "hand the file over with --file field=PATH"
	}
	return fmt.Sprintf("write the file to %s before the result is returned", stage)
}

// what names the kind of a directory entry.
func what(mode fs.FileMode) string {
	if mode.IsRegular() {
		return "a file"
	}
	return safefs.Describe(mode)
}

func irregularHint(mode fs.FileMode, stage Stage) string {
	if mode.IsDir() {
		return "name a file; to pass a whole directory make an archive of it"
	}
	return fmt.Sprintf("copy the content into a regular file in %s", stage)
}

// customary are the fields of an input that hold files by custom: programs of the AOD
// standard put paths there, whatever the contract says.
var customary = []string{"file", "files"}

// CustomaryFields lists the fields of an input that hold files by custom.
func CustomaryFields() []string { return slices.Clone(customary) }

// IsCustomary reports whether a field of an input holds files by custom.
func IsCustomary(field string) bool { return slices.Contains(customary, field) }

// CustomaryFiles lists the strings of an input's fields `file` and `files`, and of lists in
// them, as references to files at a stage. Whether one is a file is for the caller to say:
// one that names no file that was given is a string like any other. Names that can't be file
// names are left out, but for absolute ones, which have an Err.
func CustomaryFiles(p Payload, stage Stage) []FileRef {
	var refs []FileRef
	for _, field := range customary {
		value, _ := p.Get(field)
		refs = textsIn(refs, value, stage, 1, field)
	}
	return fitNames(refs)
}

// TextFiles is CustomaryFiles of all fields, and of what is in them.
func TextFiles(p Payload, stage Stage) []FileRef {
	return fitNames(textsIn(nil, p.value(), stage, maxTextDepth))
}

// maxTextDepth bounds how deep a text may lie that names a file.
const maxTextDepth = 8

// textsIn adds the texts in a value, at most so many lists and objects deep.
func textsIn(refs []FileRef, value any, stage Stage, deep int, at ...string) []FileRef {
	below := func(key string, v any) {
		if _, text := v.(string); text || deep > 0 {
			refs = textsIn(refs, v, stage, deep-1, append(slices.Clone(at), key)...)
		}
	}
	switch v := value.(type) {
	case string:
		refs = append(refs, customaryRef(v, stage, at...))
	case []any:
		for i, element := range v {
			below(strconv.Itoa(i), element)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			below(key, v[key])
		}
	}
	return refs
}

func fitNames(refs []FileRef) []FileRef {
	return slices.DeleteFunc(refs, func(ref FileRef) bool {
		problem, _ := unfit(ref.Text)
		return problem != ""
	})
}

func customaryRef(text string, stage Stage, path ...string) FileRef {
	name, err := CleanName(text, stage)
	return FileRef{Pointer: strictjson.Pointer(path...), Text: text, Name: name, Err: err, path: path}
}
