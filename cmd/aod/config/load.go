package config

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// Options are the sources of Load.
type Options struct {
	File   string                   // a YAML file; if "", AOD_CONFIG may name one
	Flags  *pflag.FlagSet           // parsed; nil for none. Other flags than settings are ignored
	Getenv func(name string) string // like os.Getenv; "" is not set. nil for no environment
	Data   string                   // the default of the data directory
}

// Load reads the settings. A flag overrides an environment variable, which overrides the
// file, which overrides the default. Relative paths in the file begin at the file's
// directory, others at the working directory. All problems, also with overridden values,
// are returned together as the findings of an Input fault.
func Load(opts Options) (*Config, error) {
	work, err := workingDirectory()
	if err != nil {
		return nil, err
	}
	l := newLoader(absolute(work, opts.Data))
	if opts.Getenv == nil {
		opts.Getenv = func(string) string { return "" }
	}
	if opts.File == "" {
		opts.File = opts.Getenv("AOD_CONFIG")
	}
	if opts.File != "" {
		f := file{loader: l, name: opts.File, base: absolute(work, filepath.Dir(opts.File))}
		f.read()
	}
	l.environment(opts.Getenv, work)
	l.flags(opts.Flags, work)
	l.settle()
	l.check()
	if len(l.findings) > 0 {
		return nil, problems(l.findings)
	}
	return l.config, nil
}

// workingDirectory is where relative paths begin. Another user's may be closed to this one.
func workingDirectory() (string, error) {
	work, err := os.Getwd()
	if err != nil {
		return "", fault.Wrap(fault.Input, err, "the working directory can't be found: %s", safefs.Reason(err)).
			WithHint("change to one that is there and yours, such as /")
	}
	return work, nil
}

func problems(findings []fault.Finding) error {
	if len(findings) == 1 {
		return fault.New(fault.Input, "there is a problem with the configuration").WithFindings(findings)
	}
	return fault.New(fault.Input, "there are %d problems with the configuration", len(findings)).WithFindings(findings)
}

// place is the source of a value. The zero place is the default.
type place struct {
	name string // of a file, or "flag --listen", "environment AOD_LISTEN"
	line int    // from 1; 0 if there are no lines
}

func (p place) String() string {
	switch {
	case p.name == "":
		return "default"
	case p.line > 0:
		return fmt.Sprintf("%s:%d", p.name, p.line)
	}
	return p.name
}

// loader fills a Config and gathers the problems.
type loader struct {
	config   *Config
	rows     []setting
	findings []fault.Finding
}

// newLoader returns a loader whose Config holds the defaults.
func newLoader(data string) *loader {
	c := &Config{
		Data: data, Unit: map[string]UnitConfig{}, Teams: map[string]TeamConfig{}, Hooks: map[string]HookConfig{},
		Worker: map[string]WorkerConfig{},
		Tokens: map[string]Quota{}, sources: map[string]place{},
	}
	rows := c.settings()
	setDefaults(rows)
	setDefaults(c.A2A.settings())
	setDefaults(c.OIDC.settings())
	setDefaults(c.Webhooks.settings())
	setDefaults(c.Policy.settings())
	setDefaults(c.Uploads.uploadSettings())
	return &loader{config: c, rows: rows}
}

// setDefaults sets every field that has a fallback. An invalid fallback is a mistake of the
// table, which a test finds.
func setDefaults(rows []setting) {
	for _, s := range rows {
		if s.fallback == "" {
			continue
		}
		if err := s.into.set(s.fallback); err != nil {
			panic("config: " + s.key + ": " + err.Error())
		}
	}
}

func (l *loader) environment(getenv func(string) string, work string) {
	for _, s := range l.rows {
		if text := getenv(s.env()); text != "" {
			l.set(s, s.key, place{name: "environment " + s.env()}, work, s.into.set(text))
		}
	}
}

func (l *loader) flags(fs *pflag.FlagSet, work string) {
	if fs == nil {
		return
	}
	for _, s := range l.rows {
		if f := fs.Lookup(s.flag()); f != nil && f.Changed {
			l.set(s, s.key, place{name: "flag --" + s.flag()}, work, s.take(f.Value))
		}
	}
}

// take sets the setting from a flag's value.
func (s setting) take(given pflag.Value) error {
	items, repeated := given.(pflag.SliceValue)
	field, ok := s.into.(several)
	if repeated && ok {
		return field.setAll(items.GetSlice())
	}
	return s.into.set(given.String())
}

// set completes the setting of a value: it records the source, or the problem.
func (l *loader) set(s setting, key string, from place, base string, err error) {
	if err != nil {
		l.report(from, key+": "+err.Error(), s.into.hint())
		return
	}
	if field, ok := s.into.(rooted); ok {
		field.root(base)
	}
	l.config.sources[key] = from
}

func (l *loader) report(at place, message, hint string) {
	l.findings = append(l.findings, fault.Finding{File: at.name, Line: at.line, Message: message, Hint: hint})
}
