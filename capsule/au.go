package capsule

import (
	"cmp"
	_ "embed"
	"sync"
	"time"

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
