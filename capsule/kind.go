package capsule

import "time"

// The kinds of unit that a directory can hold.
const (
	KindCapsule = "capsule"
	KindAU      = "au"     // an Agentic Unit: bytes on stdin, JSON on stdout
	KindRemote  = "remote" // an agent elsewhere: of the agent HTTP contract, or of the A2A protocol
	KindMCP     = "mcp"    // a server of the Model Context Protocol on stdin and stdout
	KindFlow    = "flow"   // a graph of runs of other units
	KindAgent   = "agent"  // a CLI agent, wrapped
)

// Kind says how the directories of one kind of unit are read.
type Kind struct {
	Name string // as agent.yaml says it
	// Read reads what belongs to a directory beside its agent.yaml, which c has already. It
	// sets c.Contract, and reports what is wrong.
	Read func(d *Directory, c *Capsule)

	settings func(u *units, file agentYAML, object map[string]any) // checks what the schema can't; nil: nothing
	// there is no container: settings about one make no sense
	elsewhere bool
	longest   time.Duration // of limits.timeout; 0: maxTimeout
	noReuse   string        // why reuse has no effect; "": it has
}

// kinds are those that there are, by their names.
var kinds = map[string]Kind{
	KindCapsule: {Name: KindCapsule, Read: readCapsule, settings: (*units).refuseOthers},
	KindAU: {
		Name: KindAU, Read: readAU, settings: (*units).refuseOthers,
		noReuse: "an Agentic Unit's program takes one input and ends",
	},
	KindRemote: {Name: KindRemote, Read: readRemote, settings: (*units).checkRemote, elsewhere: true},
	KindMCP: {
		Name: KindMCP, Read: readMCP, settings: (*units).checkMCP,
		noReuse: "each session has a server of its own",
	},
	KindAgent: {
		Name: KindAgent, Read: readWrapped, settings: (*units).checkWrapped,
		noReuse: "a wrapped agent's program takes one message and ends",
	},
	KindFlow: {Name: KindFlow, Read: readFlow, settings: (*units).checkFlow, elsewhere: true, longest: MaxFlowTimeout},
}

// readCapsule reads what makes a directory a capsule's.
func readCapsule(d *Directory, c *Capsule) {
	c.dockerfile = d.checkDockerfile()
	c.Tools = d.Tools()
	d.checkServers(c.Tools)
	c.Contract = d.Contract()
	d.checkProgram(c, c.dockerfile)
	readSkills(d, c)
}
