package capsule

import "time"

// The kinds of unit that a directory can hold, beside those that a Reader is told of.
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

	settings  func(u *units, file agentYAML, object map[string]any) // checks what the schema can't; nil: nothing
	elsewhere bool                                                  // there is no container: settings about one make no sense
	longest   time.Duration                                         // of limits.timeout; 0: maxTimeout
	noReuse   string                                                // why reuse has no effect; "": it has
}

// kinds are those of this package.
var kinds = []Kind{
	{Name: KindCapsule, Read: readCapsule, settings: (*units).refuseOthers},
	{Name: KindAU, Read: readAU, settings: (*units).refuseOthers, noReuse: "an Agentic Unit's program takes one input and ends"},
	{Name: KindRemote, Read: readRemote, settings: (*units).checkRemote, elsewhere: true},
	{Name: KindMCP, Read: readMCP, settings: (*units).checkMCP, noReuse: "each session has a server of its own"},
	{Name: KindAgent, Read: readWrapped, settings: (*units).checkWrapped, noReuse: "a wrapped agent's program takes one message and ends"},
	{Name: KindFlow, Read: readFlow, settings: (*units).checkFlow, elsewhere: true, longest: MaxFlowTimeout},
}

// Reader reads the directories of units. It knows the kinds of this package and those that
// it is told of.
type Reader struct{ kinds map[string]Kind }

// NewReader returns a Reader that knows more kinds.
func NewReader(more ...Kind) *Reader {
	r := &Reader{kinds: map[string]Kind{}}
	for _, kind := range append(kinds[:len(kinds):len(kinds)], more...) {
		r.kinds[kind.Name] = kind
	}
	return r
}

// Load reads the capsule in a directory, of one of the kinds of this package. See
// Reader.Load.
func Load(dir string) (*Capsule, error) { return NewReader().Load(dir) }

// readCapsule reads what makes a directory a capsule's.
func readCapsule(d *Directory, c *Capsule) {
	c.dockerfile = d.checkDockerfile()
	c.Tools = d.Tools()
	d.checkServers(c.Tools)
	c.Contract = d.Contract()
	d.checkProgram(c, c.dockerfile)
}
