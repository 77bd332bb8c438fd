package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/agent-on-demand/aod/api/fault"
)

// given is what a test gives to Load.
type given struct {
	file string // the text of aod.yaml in the working directory; "" for none
	env  map[string]string
	args []string
}

// load reads the settings in a working directory of the test's own, with /data as the
// data directory.
func load(t *testing.T, g given) (*Config, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	opts := Options{Data: "/data", Flags: flagSet(t, g.args), Getenv: func(name string) string { return g.env[name] }}
	if g.file != "" {
		opts.File = "aod.yaml"
		write(t, opts.File, g.file)
	}
	return Load(opts)
}

func mustLoad(t *testing.T, g given) *Config {
	t.Helper()
	c, err := load(t, g)
	if err != nil {
		t.Fatal(strings.Join(findings(t, err), "\n"))
	}
	return c
}

// flagSet parses a command line; as in the program, some flags aren't settings.
func flagSet(t *testing.T, args []string) *pflag.FlagSet {
	t.Helper()
	fs := pflag.NewFlagSet("aod", pflag.ContinueOnError)
	fs.String("config", "", "")
	Flags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return fs
}

// findings returns what is wrong, a line each, without the hints.
func findings(t *testing.T, err error) []string {
	t.Helper()
	if !fault.Is(err, fault.Input) {
		t.Fatalf("it isn't an Input fault: %v", err)
	}
	var lines []string
	for _, f := range fault.Public(err).Findings {
		lines = append(lines, f.Where()+": "+f.Message)
	}
	if len(lines) == 0 {
		t.Errorf("nothing was found: %v", err)
	}
	return lines
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func source(c *Config, key string) string {
	for _, v := range c.Values() {
		if v.Key == key {
			return v.Source
		}
	}
	return "there is no " + key
}
