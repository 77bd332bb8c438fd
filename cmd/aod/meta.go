package main

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/fault"
)

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
			return nil, fault.New(fault.Input, "--meta takes KEY=VALUE, each key once").WithHint("for example --meta user_id=ada")
		}
		metadata[key] = value
	}
	return metadata, api.CheckMetadata(metadata)
}
