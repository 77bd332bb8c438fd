package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/unit"
	"github.com/agent-on-demand/aod/internal/workspace"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/runtime"
)

// Request asks for one run of a unit.
type Request struct {
	Unit    *unit.Unit
	Input   contract.Payload
	Files   []InputFile
	Placed  []PlacedFile  // files that have their names already
	Timeout time.Duration // 0: the unit's, or the default
	Lineage *Lineage      // of a run that is called; nil for a root
	Project PlaceProject  // that the run works on; nil: none
	Start   capsule.AgentStart
	// Extra is the part of the request that only the unit's kind understands. nil stands for
	// the operator's settings.
	Extra any
}

// InputFile is a file that the caller gives for a field of the input.
type InputFile struct {
	Field string // dotted path; a list field takes as many files as are given for it; "": the input needn't name it
	Path  string // on this machine
	Name  string // in /io/input; "" is the path's last part
	Ours  bool   // it may be moved

	SHA256 string // of its content, if that is known already
}

// PlacedFile is an input file under the name that it gets in /io/input.
type PlacedFile struct {
	Source string // on this machine
	Name   string // slash-separated
	Field  string // that it was given for; "": the input needn't name it
	Ours   bool   // the source may be moved
	SHA256 string // of its content, if that is known already
}

// Input is an input that keeps the contract, with its files.
type Input struct {
	Payload contract.Payload
	Files   []PlacedFile // until they are in the run's directory
}

// Prepare sets the file fields and checks the input, first against the contract and then by
// the unit's kind. The error is an Input fault with every violation, or the cause of ctx's end.
func (r Request) Prepare(ctx context.Context, kind Kind) (Input, error) {
	payload, files, err := r.placeFiles()
	if err != nil {
		return Input{}, err
	}
	ready := Input{Payload: payload, Files: append(files, r.Placed...)}
	return ready, r.Check(ctx, kind, ready)
}

// Check checks a prepared input against the contract and by the kind.
func (r Request) Check(ctx context.Context, kind Kind, ready Input) error {
	if err := kind.Check(r, ready); err != nil {
		return err
	}
	findings, err := r.Unit.Contract.Input.ValidateContext(ctx, ready.Payload)
	if err != nil {
		return err
	}
	findings = append(findings, r.checkFileRefs(ready)...)
	if len(findings) == 0 {
		return nil
	}
	return fault.New(fault.Input, "the input breaks the contract of %q", r.Unit.Name).
		WithHint("see `input` in its schema.json").
		WithFindings(findings)
}

// placeFiles gives every file its name in /io/input and sets its field to that.
func (r Request) placeFiles() (contract.Payload, []PlacedFile, error) {
	taken := map[string]bool{}
	given := map[string][]any{} // by field
	var files []PlacedFile
	for _, f := range r.Files {
		if f.Field != "" && len(given[f.Field]) > 0 && !r.isList(f.Field) {
			return r.Input, nil, fault.New(fault.Input, "two files were given for %q, which takes one", f.Field).
				WithHint("a field for several is {\"type\": \"array\", \"items\": {\"type\": \"string\", \"format\": " +
					"\"file_path\"}}")
		}
		name, err := inputName(f, taken)
		if err != nil {
			return r.Input, nil, err
		}
		if err := regular(f); err != nil {
			return r.Input, nil, err
		}
		taken[name] = true
		files = append(files, PlacedFile{Source: f.Path, Name: name, Field: f.Field, Ours: f.Ours, SHA256: f.SHA256})
		given[f.Field] = append(given[f.Field], name)
	}
	delete(given, "")
	input, err := r.withNames(given)
	return input, files, err
}

// withNames sets fields of the input to the names of their files.
func (r Request) withNames(given map[string][]any) (contract.Payload, error) {
	input := r.Input
	var err error
	for _, f := range r.Files { // in the order in which they were given
		names := given[f.Field]
		delete(given, f.Field)
		switch {
		case names == nil:
		case r.isList(f.Field):
			input, err = input.With(f.Field, names)
		default:
			input, err = input.With(f.Field, names[0])
		}
		if err != nil {
			return input, err
		}
	}
	return input, nil
}

// regular returns a fault if an input file isn't a regular file.
func regular(f InputFile) error {
	info, err := os.Stat(f.Path)
	switch {
	case err != nil:
		return fault.Wrap(fault.Input, err, "cannot read the file for %q: %q", f.Field, f.Path)
	case !info.Mode().IsRegular():
		return fault.New(fault.Input, "the file for %q is not a regular file: %q", f.Field, f.Path)
	}
	return nil
}

// isList reports whether the files for a field make a list. `file` and `files` keep the form
// that they have in the input where the contract doesn't call them files.
func (r Request) isList(field string) bool {
	schema := r.Unit.Contract.Input
	if value, there := r.Input.Get(field); there && contract.IsCustomary(field) &&
		!slices.Contains(schema.FileFields(), field) {
		_, list := value.([]any)
		return list
	}
	return schema.IsList(field)
}

// inputName returns the name of a file in /io/input: its own name if possible. A second file
// with the same name gets a directory of its own.
func inputName(f InputFile, taken map[string]bool) (string, error) {
	base := cmp.Or(f.Name, filepath.Base(f.Path))
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

// checkFileRefs finds files that the input names and nobody gave, and files that were given
// and the input doesn't name.
func (r Request) checkFileRefs(ready Input) []fault.Finding {
	named := map[string]bool{} // the files that were given
	for _, f := range ready.Files {
		named[f.Name] = false
	}
	var findings []fault.Finding
	for _, ref := range r.Unit.Contract.Input.FileRefs(ready.Payload) {
		if ref.Err != nil {
			findings = append(findings, fault.Finding{Pointer: ref.Pointer, Message: ref.Err.Error()})
			continue
		}
		if _, given := named[ref.Name]; !given {
			message, foreign := fault.Foreignf("names the file %s, which was not given",
				fault.Foreign(strconv.Quote(ref.Name)))
			findings = append(findings, fault.Finding{
				Pointer: ref.Pointer, Message: message, Foreign: foreign,
				Hint: "give it with --file " + FieldOf(ref.Pointer) + "=PATH",
			})
		}
		named[ref.Name] = true
	}
	for _, ref := range contract.CustomaryFiles(ready.Payload, contract.StageInput) {
		named[ref.Name] = true
	}
	for _, f := range ready.Files {
		if f.Field != "" && !named[f.Name] {
			findings = append(findings, r.notAFileField(f))
		}
	}
	return findings
}

func (r Request) notAFileField(f PlacedFile) fault.Finding {
	finding := fault.Finding{
		Message: fmt.Sprintf("a file was given for %q, which the contract doesn't declare as one", f.Field),
		Hint:    `a file field is {"type": "string", "format": "file_path"}`,
	}
	if known := r.Unit.Contract.Input.TakingFiles(); len(known) > 0 {
		finding.Hint = fmt.Sprintf("its file fields are %q", known)
	}
	return finding
}

// Limits returns what is in force for this request: what it and the unit ask for, else the
// fallback, within the unit's bounds.
func (r Request) Limits(fallback runtime.Limits) runtime.Limits {
	asked := limitsOf(r.Unit.Policy.Limits)
	asked.Timeout = cmp.Or(r.Timeout, asked.Timeout)
	return asked.Or(fallback).AtMost(limitsOf(r.Unit.Policy.Bounds.Limits))
}

func limitsOf(l capsule.Limits) runtime.Limits {
	return runtime.Limits{
		Timeout: l.Timeout, MemoryBytes: l.MemoryBytes, CPUs: l.CPUs, PIDs: l.PIDs,
		OutputBytes: l.OutputBytes, OutputFiles: l.OutputFiles, LogBytes: l.LogBytes,
	}
}

// FieldOf converts a JSON pointer to the dotted field that --file takes. For an item of a
// list that is the field of the list.
func FieldOf(pointer string) string {
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	if _, err := strconv.Atoi(parts[len(parts)-1]); err == nil && len(parts) > 1 {
		parts = parts[:len(parts)-1]
	}
	return strings.Join(parts, ".")
}

// Terms are what a request, the operator and the unit have for a run. They hold in each process that leads it.
type Terms struct {
	Timeout     time.Duration `json:"timeout,omitempty"` // of the request; 0: the unit's, or the default
	Retries     int           `json:"retries"`           // how many there may be
	Concurrency int           `json:"concurrency,omitempty"`
	TraceParent string        `json:"traceparent,omitempty"` // W3C trace context of the caller; "": none
}

// PlaceProject stores a project in an empty directory, as far as the options let it in. The error
// is a fault.
type PlaceProject func(ctx context.Context, dir string, o workspace.Options) (workspace.Manifest, error)

// StoredProject returns what copies the project from the directory of a run; nil: there is none.
func StoredProject(runDir string) (PlaceProject, error) {
	manifest, err := workspace.LoadManifest(filepath.Join(runDir, layout.Manifest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the project of the earlier run can't be read")
	}
	return func(ctx context.Context, dir string, _ workspace.Options) (workspace.Manifest, error) {
		return manifest, StorageFault(workspace.Clone(ctx, filepath.Join(runDir, layout.Base), dir,
			workspace.CloneOptions{}))
	}, nil
}

// Source is a reader that remembers its error. After a copy it tells a failed read from a
// failed write.
type Source struct {
	io.Reader
	Err error // the first, but for io.EOF
}

// Read implements io.Reader.
func (s *Source) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		s.Err = err
	}
	return n, err
}
