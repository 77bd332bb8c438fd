// Package runflags has the flags that several commands of runs take: what a run gets, and what its unit is given. It
// must not know commands.
//
// Its Go API may change with every release: see docs/stability.md.
package runflags

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// Input are the flags for a capsule's input.
type Input struct {
	Text string
	Set  []string
	File []string
}

// Register adds the flags to a command.
func (f *Input) Register(flags *pflag.FlagSet) {
	flags.StringVarP(&f.Text, "input", "i", "", "the input: a JSON object, @FILE, or - for stdin")
	flags.StringArrayVarP(&f.Set, "set", "s", nil, "set a field, typed by the contract: `key=value`; may be repeated")
	flags.StringArrayVarP(&f.File, "file", "f", nil, "give a file and set its field: `field=PATH`; may be repeated")
}

// Read combines the input: --input first, then every --set.
func (f *Input) Read(schema *contract.Schema, stdin io.Reader) (contract.Payload, []run.InputFile, error) {
	payload, err := f.payload(stdin)
	if err != nil {
		return payload, nil, err
	}
	for _, assignment := range f.Set {
		if payload, err = Assign(payload, assignment, schema); err != nil {
			return payload, nil, err
		}
	}
	var files []run.InputFile
	for _, assignment := range f.File {
		field, path, err := Split("--file", assignment, "field=PATH")
		if err != nil {
			return payload, nil, err
		}
		files = append(files, run.InputFile{Field: field, Path: path})
	}
	return payload, files, nil
}

func (f *Input) payload(stdin io.Reader) (contract.Payload, error) {
	raw, err := f.raw(stdin)
	if err != nil {
		return contract.Payload{}, err
	}
	return contract.Decode(raw, contract.DefaultMaxBytes)
}

func (f *Input) raw(stdin io.Reader) ([]byte, error) {
	path, isFile := strings.CutPrefix(f.Text, "@")
	switch {
	case f.Text == "":
		return []byte("{}"), nil
	case f.Text == "-":
		return ReadInput(stdin, "standard input")
	case !isFile:
		return []byte(f.Text), nil
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Input, "--input: there is no file %q", path)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Input, err, "--input: %q can't be opened", path)
	}
	defer func() { _ = file.Close() }() // read only
	return ReadInput(file, path)
}

// ReadInput reads one byte more than is allowed, so that the payload's own check detects
// the excess.
func ReadInput(r io.Reader, name string) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, contract.DefaultMaxBytes+1))
	if err != nil {
		return nil, fault.Wrap(fault.Input, err, "--input: %s can't be read", name)
	}
	return raw, nil
}

// Assign sets a field of a payload as `key=value` says, typed by the schema.
func Assign(payload contract.Payload, assignment string, schema *contract.Schema) (contract.Payload, error) {
	key, text, err := Split("--set", assignment, "key=value")
	if err != nil {
		return payload, err
	}
	value, err := schema.ParseField(key, text)
	if err != nil {
		return payload, err
	}
	return payload.With(key, value)
}

// Split splits what a flag assigns.
func Split(flag, assignment, form string) (key, value string, err error) {
	key, value, found := strings.Cut(assignment, "=")
	if !found || key == "" {
		return "", "", fault.New(fault.Input, "%s %q is not of the form %s", flag, assignment, form)
	}
	return key, value, nil
}

// Meta are the metadata of a run, or the metadata to search for.
type Meta []string

// Register adds the flags to a command.
func (f *Meta) Register(flags *pflag.FlagSet, usage string) {
	flags.StringArrayVar((*[]string)(f), "meta", nil, usage+", as KEY=VALUE; may be repeated")
}

// Read returns the given metadata, within its bounds.
func (f Meta) Read() (map[string]string, error) {
	if len(f) == 0 {
		return nil, nil
	}
	metadata := make(map[string]string, len(f))
	for _, text := range f {
		key, value, found := strings.Cut(text, "=")
		if _, twice := metadata[key]; !found || twice {
			return nil, fault.New(fault.Input, "--meta takes KEY=VALUE, each key once").
				WithHint("for example --meta user_id=ada")
		}
		metadata[key] = value
	}
	return metadata, api.CheckMetadata(metadata)
}

// Arguments reads the arguments of a tool, typed by its schema where that can be read.
func (f *Input) Arguments(schema json.RawMessage, stdin io.Reader) (json.RawMessage, error) {
	compiled, _ := contract.Compile(schema)
	if compiled == nil {
		compiled, _ = contract.Compile([]byte(`{"type":"object"}`))
	}
	payload, _, err := f.Read(compiled, stdin)
	return payload.JSON(), err
}

// Watched are the files that the input comes from.
func (f *Input) Watched() []string {
	var names []string
	if path, isFile := strings.CutPrefix(f.Text, "@"); isFile {
		names = append(names, path)
	}
	for _, assignment := range f.File {
		if _, path, ok := strings.Cut(assignment, "="); ok {
			names = append(names, path)
		}
	}
	return names
}
