package orchestrator

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/runtime"
)

// Request asks for one run of a capsule.
type Request struct {
	ID      string // "" makes a new one
	Capsule *capsule.Capsule
	Input   contract.Payload
	Files   []InputFile
	Timeout time.Duration // 0: the capsule's, or the default
	// OutDir gets the output files. It is made only when there are some.
	OutDir string
	// Keep leaves the run's directory for a look; Run.KeptAt says where.
	Keep bool
	// Observe is told of everything as it happens, in this run and in those that it
	// calls: one call at a time for each of them. It must not block.
	Observe func(Event)
	// Find returns the capsule that the run may call by name, or a NotFound fault; nil
	// knows none.
	Find func(name string) (*capsule.Capsule, error)

	// ModelPath is a file or directory of this machine, absolute, that an Agentic Unit gets
	// as its --model-path; "" is none.
	ModelPath string
	// StdinBytes is the most that an Agentic Unit gets on stdin; 0 is au.DefaultStdinBytes.
	StdinBytes int64

	// Stream joins an Agentic Unit with others, while they run; nil: with none.
	Stream *Stream

	placed []placedFile // files that have their names already
	family *family      // of a run that is called; nil for a root
}

// InputFile is a file of the caller's for a field of the input.
type InputFile struct {
	Field string // dotted path; a list field takes as many files as are given for it
	Path  string // on this machine
	Name  string // in /io/input; "" is the path's last part
}

// prepared is a request that may run.
type prepared struct {
	input contract.Payload
	files []placedFile
}

// placedFile is an input file under the name that it gets in /io/input.
type placedFile struct {
	source string
	name   string
	field  string // that it was given for
}

// prepare sets the file fields and checks the input against the contract. The error
// is a fault of kind Input with every violation.
func (r Request) prepare() (prepared, error) {
	input, files, err := r.placeFiles()
	if err != nil {
		return prepared{}, err
	}
	files = append(files, r.placed...)
	ready := prepared{input: input, files: files}
	return ready, r.check(ready)
}

// check holds what is ready against the contract.
func (r Request) check(ready prepared) error {
	if err := r.checkStdin(ready); err != nil {
		return err
	}
	findings := r.Capsule.Contract.Input.Validate(ready.input)
	findings = append(findings, r.checkFileRefs(ready.input, ready.files)...)
	if len(findings) == 0 {
		return nil
	}
	return fault.New(fault.Input, "the input breaks the contract of %q", r.Capsule.Name).
		WithHint("see `input` in its schema.json").
		WithFindings(findings)
}

// placeFiles gives every file its name in /io/input and sets its field to that.
func (r Request) placeFiles() (contract.Payload, []placedFile, error) {
	input := r.Input
	taken := map[string]bool{}
	given := map[string][]any{} // by field
	var files []placedFile
	for _, f := range r.Files {
		list := r.isList(f.Field)
		if len(given[f.Field]) > 0 && !list {
			return input, nil, fault.New(fault.Input, "two files were given for %q, which takes one", f.Field).
				WithHint("a field for several is {\"type\": \"array\", \"items\": {\"type\": \"string\", \"format\": \"file_path\"}}")
		}
		name, err := inputName(f, taken)
		if err != nil {
			return input, nil, err
		}
		taken[name] = true
		if err := regular(f); err != nil {
			return input, nil, err
		}
		files = append(files, placedFile{source: f.Path, name: name, field: f.Field})
		given[f.Field] = append(given[f.Field], name)
		var value any = name
		if list {
			value = given[f.Field]
		}
		if input, err = input.With(f.Field, value); err != nil {
			return input, nil, err
		}
	}
	return input, files, nil
}

// regular looks at the file before anything is started for it.
func regular(f InputFile) error {
	info, err := os.Stat(f.Path)
	switch {
	case err != nil:
		return fault.Wrap(fault.Input, err, "the file for %q can't be had: %q", f.Field, f.Path)
	case !info.Mode().IsRegular():
		return fault.New(fault.Input, "the file for %q is not a regular file: %q", f.Field, f.Path)
	}
	return nil
}

// isList reports whether the contract wants a list in that field.
func (r Request) isList(field string) bool {
	value, err := r.Capsule.Contract.Input.ParseField(field, "[]")
	if err != nil {
		return false
	}
	_, list := value.([]any)
	return list
}

// inputName is the file's own name where that can be had; a second file of the same
// name gets a directory of its own.
func inputName(f InputFile, taken map[string]bool) (string, error) {
	base := f.Name
	if base == "" {
		base = filepath.Base(f.Path)
	}
	name := base
	for n := 2; taken[name]; n++ {
		name = path.Join(fmt.Sprint(n), base)
	}
	clean, err := contract.CleanName(name, contract.StageInput)
	if err != nil {
		return "", fault.Wrap(fault.Input, err, "the file for %q can't keep its name in /io/input", f.Field).
			WithHint("rename %q", base)
	}
	return clean, nil
}

// checkFileRefs makes sure that every file the input names was given, and every
// file that was given is named.
func (r Request) checkFileRefs(input contract.Payload, files []placedFile) []fault.Finding {
	given := map[string]bool{}
	for _, f := range files {
		given[f.name] = false
	}
	var findings []fault.Finding
	for _, ref := range r.Capsule.Contract.Input.FileRefs(input) {
		if ref.Err != nil {
			findings = append(findings, fault.Finding{Pointer: ref.Pointer, Message: ref.Err.Error()})
			continue
		}
		if _, ok := given[ref.Name]; !ok {
			message, foreign := fault.Foreignf("names the file %s, which was not given", fault.Foreign(strconv.Quote(ref.Name)))
			findings = append(findings, fault.Finding{
				Pointer: ref.Pointer, Message: message, Foreign: foreign,
				Hint: "give it with --file " + fieldOf(ref.Pointer) + "=PATH",
			})
		}
		given[ref.Name] = true
	}
	for _, f := range files {
		if !given[f.name] {
			findings = append(findings, r.notAFileField(f))
		}
	}
	return findings
}

func (r Request) notAFileField(f placedFile) fault.Finding {
	finding := fault.Finding{
		Message: fmt.Sprintf("a file was given for %q, which the contract doesn't declare as one", f.field),
		Hint:    `a file field is {"type": "string", "format": "file_path"}`,
	}
	if known := r.Capsule.Contract.Input.FileFields(); len(known) > 0 {
		finding.Hint = fmt.Sprintf("its file fields are %q", known)
	}
	return finding
}

// callee returns a capsule that the run may call.
func (r Request) callee(name string) (*capsule.Capsule, error) {
	if r.Find == nil {
		return nil, fault.New(fault.NotFound, "there is no unit %q", name)
	}
	return r.Find(name)
}

// limits returns what is in force for this request.
func (r Request) limits(fallback runtime.Limits) runtime.Limits {
	said := r.Capsule.Agent.Limits
	if r.Capsule.Kind == capsule.KindAU {
		fallback = auLimits(fallback)
	}
	return runtime.Limits{
		Timeout:     cmp.Or(r.Timeout, said.Timeout),
		MemoryBytes: said.MemoryBytes,
		CPUs:        said.CPUs,
		PIDs:        said.PIDs,
		OutputBytes: said.OutputBytes,
		OutputFiles: said.OutputFiles,
		LogBytes:    said.LogBytes,
	}.Or(fallback)
}

// fieldOf turns a pointer into the dotted field that --file takes. Files of a list
// are given one by one for the list itself.
func fieldOf(pointer string) string {
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	if _, err := strconv.Atoi(parts[len(parts)-1]); err == nil && len(parts) > 1 {
		parts = parts[:len(parts)-1]
	}
	return strings.Join(parts, ".")
}
