package contract

import (
	"slices"
	"strconv"

	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

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
		if text, ok := value.(string); ok {
			refs = append(refs, customaryRef(text, stage, field))
		}
		list, _ := value.([]any)
		for i, element := range list {
			if text, ok := element.(string); ok {
				refs = append(refs, customaryRef(text, stage, field, strconv.Itoa(i)))
			}
		}
	}
	return slices.DeleteFunc(refs, func(ref FileRef) bool {
		problem, _ := unfit(ref.Text)
		return problem != ""
	})
}

func customaryRef(text string, stage Stage, path ...string) FileRef {
	name, err := CleanName(text, stage)
	return FileRef{Pointer: strictjson.Pointer(path...), Text: text, Name: name, Err: err, path: path}
}

// WithNames returns a copy of the payload with the clean name in the place of each text that
// a reference stands for.
func (p Payload) WithNames(refs []FileRef) (Payload, error) {
	object, _ := clone(p.value()).(map[string]any)
	for _, ref := range refs {
		replace(object, ref.path, ref.Name)
	}
	return NewPayload(object)
}

// IsList reports whether files for the field at a dotted path make a list of names. The
// contract says so; where it says nothing a field takes a list, but for `file`.
func (s *Schema) IsList(path string) bool {
	value, err := s.ParseField(path, "[]")
	if err != nil {
		return path == "files"
	}
	if _, list := value.([]any); !list {
		return false
	}
	if path != "file" {
		return true
	}
	_, err = s.ParseField(path, "{}") // what says nothing takes an object as well
	return err != nil
}
