package capsule

import (
	_ "embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
)

// auSchema is the schema.json that no Agentic Unit has.
//
//go:embed au.json
var auSchema []byte

// AUCall is the input of an Agentic Unit as a unit of AOD: what its process gets.
type AUCall struct {
	Stdin  string            `json:"stdin"`  // an input file; "" is empty input
	Prompt string            `json:"prompt"` //
	Args   []string          `json:"args"`   // as they would follow the program's name
	Env    map[string]string `json:"env"`
}

// auContract is the same for all Agentic Units: what more there is to say is in their model
// cards.
var auContract = sync.OnceValue(func() *contract.Contract {
	c, findings := contract.Parse(auSchema)
	if c == nil {
		panic("capsule: the contract of Agentic Units doesn't compile: " + findings[0].String())
	}
	return c
})

// refuse reports files that have no meaning here.
func (l *loader) refuse(message, hint string, names ...string) {
	for _, name := range names {
		if _, err := l.source.read(name, maxFileBytes); !errors.Is(err, fs.ErrNotExist) {
			l.report(name, 0, message, hint)
		}
	}
}

// Schema returns the document of the capsule's contract: its schema.json, or what stands for
// that with an Agentic Unit. The error is a Capsule fault.
func (c *Capsule) Schema() ([]byte, error) {
	if c.Kind == KindAU {
		return slices.Clone(auSchema), nil
	}
	raw, err := os.ReadFile(filepath.Join(c.Dir, "schema.json"))
	if err != nil {
		return nil, fault.Wrap(fault.Capsule, err, "the schema.json of %q can't be read", c.Name)
	}
	return raw, nil
}
