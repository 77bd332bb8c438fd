package config

import (
	"slices"

	"github.com/spf13/pflag"
)

// Flags registers a flag for every setting except those whose keys are named, which
// the caller has under the same names already. What the flags were given is checked by
// Load, together with everything else.
func Flags(fs *pflag.FlagSet, except ...string) {
	for _, s := range new(Config).settings() {
		if !slices.Contains(except, s.key) {
			s.register(fs)
		}
	}
}

func (s setting) register(fs *pflag.FlagSet) {
	if _, ok := s.into.(several); ok {
		fs.StringArray(s.flag(), nil, s.doc+"; may be repeated ("+s.env()+")")
		return
	}
	f := fs.VarPF(&flagText{text: s.fallback, kind: s.into.kind()}, s.flag(), "", s.doc+" ("+s.env()+")")
	if _, ok := s.into.(boolean); ok {
		f.NoOptDefVal = "true"
	}
}

// flagText keeps what a flag was given, unread.
type flagText struct{ text, kind string }

func (t *flagText) String() string { return t.text }

// Type is what the help text shows behind the flag's name.
func (t *flagText) Type() string { return t.kind }

// Set takes any text; Load reads it.
func (t *flagText) Set(text string) error {
	t.text = text
	return nil
}
