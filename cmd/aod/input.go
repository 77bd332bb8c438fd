package main

import (
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

// inputFlags are the flags for a capsule's input.
type inputFlags struct {
	input string
	set   []string
	file  []string
}

func (f *inputFlags) register(flags *pflag.FlagSet) {
	flags.StringVarP(&f.input, "input", "i", "", "the input: a JSON object, @FILE, or - for stdin")
	flags.StringArrayVarP(&f.set, "set", "s", nil, "set a field, typed by the contract: `key=value`; may be repeated")
	flags.StringArrayVarP(&f.file, "file", "f", nil, "give a file and set its field: `field=PATH`; may be repeated")
}

// read combines the input: --input first, then every --set.
func (f *inputFlags) read(schema *contract.Schema, stdin io.Reader) (contract.Payload, []run.InputFile, error) {
	payload, err := f.payload(stdin)
	if err != nil {
		return payload, nil, err
	}
	for _, assignment := range f.set {
		if payload, err = assign(payload, assignment, schema); err != nil {
			return payload, nil, err
		}
	}
	var files []run.InputFile
	for _, assignment := range f.file {
		field, path, err := split("--file", assignment, "field=PATH")
		if err != nil {
			return payload, nil, err
		}
		files = append(files, run.InputFile{Field: field, Path: path})
	}
	return payload, files, nil
}

func (f *inputFlags) payload(stdin io.Reader) (contract.Payload, error) {
	raw, err := f.raw(stdin)
	if err != nil {
		return contract.Payload{}, err
	}
	return contract.Decode(raw, contract.DefaultMaxBytes)
}

func (f *inputFlags) raw(stdin io.Reader) ([]byte, error) {
	path, isFile := strings.CutPrefix(f.input, "@")
	switch {
	case f.input == "":
		return []byte("{}"), nil
	case f.input == "-":
		return readInput(stdin, "standard input")
	case !isFile:
		return []byte(f.input), nil
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Input, "--input: there is no file %q", path)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Input, err, "--input: %q can't be opened", path)
	}
	defer func() { _ = file.Close() }() // read only
	return readInput(file, path)
}

// readInput reads one byte more than is allowed, so that the payload's own check detects
// the excess.
func readInput(r io.Reader, name string) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, contract.DefaultMaxBytes+1))
	if err != nil {
		return nil, fault.Wrap(fault.Input, err, "--input: %s can't be read", name)
	}
	return raw, nil
}

func assign(payload contract.Payload, assignment string, schema *contract.Schema) (contract.Payload, error) {
	key, text, err := split("--set", assignment, "key=value")
	if err != nil {
		return payload, err
	}
	value, err := schema.ParseField(key, text)
	if err != nil {
		return payload, err
	}
	return payload.With(key, value)
}

func split(flag, assignment, form string) (key, value string, err error) {
	key, value, found := strings.Cut(assignment, "=")
	if !found || key == "" {
		return "", "", fault.New(fault.Input, "%s %q is not of the form %s", flag, assignment, form)
	}
	return key, value, nil
}

// metaFlags are the metadata of a run, or the metadata to search for.
type metaFlags []string

func (f *metaFlags) register(flags *pflag.FlagSet, usage string) {
	flags.StringArrayVar((*[]string)(f), "meta", nil, usage+", as KEY=VALUE; may be repeated")
}

// read returns the given metadata, within its bounds.
func (f metaFlags) read() (map[string]string, error) {
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
