package config

import (
	"slices"

	"github.com/spf13/pflag"
)

// Flags registers a flag for every setting, except for the given keys: the caller has flags
// of those names already. Load checks the values, together with everything else.
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

// flagText keeps the text of a flag, unparsed.
type flagText struct{ text, kind string }

func (t *flagText) String() string { return t.text }

// Type is the type that the help text shows after the flag's name.
func (t *flagText) Type() string { return t.kind }

// Set accepts any text; Load parses it.
func (t *flagText) Set(text string) error {
	t.text = text
	return nil
}
