package main

import (
	"cmp"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/secrets"
	"github.com/agent-on-demand/aod/upstream"
)

// readUpstreams reads the table of a file, else that of AOD_UPSTREAMS; without both it is empty.
func readUpstreams(given string) (upstream.Table, error) {
	path := cmp.Or(given, os.Getenv("AOD_UPSTREAMS"))
	if path == "" {
		return nil, nil
	}
	raw, err := readTable(path)
	if err != nil {
		return nil, fault.Wrap(fault.Input, err, "the upstreams in %q can't be read", path).WithHint("name a YAML file with upstreams")
	}
	table, findings := upstream.ReadFile(path, raw)
	if len(findings) > 0 {
		return nil, fault.New(fault.Input, "the upstreams in %q are not valid", path).WithFindings(findings)
	}
	return table, nil
}

// localUpstreams are those that runs of a command may ask, with keys from the user's files.
func (a *app) localUpstreams(opts localOptions) (*upstream.Upstreams, error) {
	table, err := readUpstreams(opts.upstreams)
	if err != nil {
		return nil, err
	}
	upstreams, err := upstream.New(table, upstream.Options{Key: secrets.Files{Dir: filepath.Join(a.data, "secrets"), Named: opts.secrets}.Read})
	if err != nil {
		return nil, err
	}
	return upstreams, checkKeys(upstreams, opts.asks)
}

// checkKeys refuses upstreams whose keys can't be used.
func checkKeys(upstreams *upstream.Upstreams, names []string) error {
	findings := upstreams.CheckKeys(names)
	if len(findings) == 0 {
		return nil
	}
	return fault.New(fault.Input, "there are upstreams without a key").WithFindings(findings)
}
