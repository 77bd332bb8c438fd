package capsule

import (
	"cmp"
	_ "embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
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
var auContract = sync.OnceValue(func() *contract.Contract { return mustContract(auSchema) })

// mustContract returns the contract of a kind whose units have no schema.json.
func mustContract(schema []byte) *contract.Contract {
	c, findings := contract.Parse(schema)
	if c == nil {
		panic("capsule: the contract of a kind doesn't compile: " + findings[0].String())
	}
	return c
}

// auTime is how long a unit may take that doesn't say (specification "Agentic Unit", section
// 8.3).
const auTime = 300 * time.Second

// readAU reads what makes a directory an Agentic Unit's.
func readAU(d *Directory, c *Capsule) {
	c.dockerfile = d.checkDockerfile()
	c.Contract, c.schema = auContract(), auSchema
	c.Agent.Limits.Timeout = cmp.Or(c.Agent.Limits.Timeout, auTime)
	d.Refuse("an Agentic Unit has none", "remove it: its contract is in its model card, and it calls nobody",
		contract.FileName, toolsFile, mcpFile)
}

// Refuse reports files that have no meaning in such a directory.
func (d *Directory) Refuse(message, hint string, names ...string) {
	for _, name := range names {
		if _, err := d.source.read(name, maxFileBytes); !errors.Is(err, fs.ErrNotExist) {
			d.report(name, 0, message, hint)
		}
	}
}

// Schema returns the document of the capsule's contract: its schema.json, or what stands for
// that with an Agentic Unit. The error is a Capsule fault.
func (c *Capsule) Schema() ([]byte, error) {
	if c.schema != nil {
		return slices.Clone(c.schema), nil
	}
	raw, err := os.ReadFile(filepath.Join(c.Dir, "schema.json"))
	if err != nil {
		return nil, fault.Wrap(fault.Capsule, err, "the schema.json of %q can't be read", c.Name)
	}
	return raw, nil
}

// OwnContract reports whether the contract is that of a schema.json.
func (c *Capsule) OwnContract() bool { return c.schema == nil }

// IsAU reports whether the directory is an Agentic Unit's.
func (c *Capsule) IsAU() bool { return c.Kind == KindAU }
