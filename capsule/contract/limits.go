package contract

import "github.com/agent-on-demand/aod/internal/wire/strictjson"

// Limits on what is read. They are far above what people write by hand and far
// below what hurts.
const (
	// DefaultMaxBytes is the size of a payload that Decode takes by default.
	DefaultMaxBytes = 1 << 20
	// MaxDepth is how deep arrays and objects may be nested, in payloads and contracts.
	MaxDepth = strictjson.MaxDepth
	// MaxFindings is how many violations one call reports; a last finding counts the rest.
	MaxFindings = 100

	maxContractBytes = 256 << 10

	maxSubschemas = 4096
	maxPatternOps = 20_000 // instructions of one compiled regular expression
	maxExpansion  = 4096   // evaluations that one value can cause without going into it
	maxInPlace    = 64     // how long a chain of those may be, each a stack frame

	// maxSteps is what one validation may cost. gojsonschema keeps about 800 bytes and
	// takes 3 µs for each step that fails, so the worst payload takes some 300 MB for
	// a second or two. A payload of 1 MiB that is no mere list of tiny numbers costs a
	// third of this.
	maxSteps = 250_000
	// heavySteps is the cost from which on validations take turns, so that one such
	// flood is in memory at a time.
	heavySteps = 50_000

	maxNameBytes = 1024 // a file reference
	maxPartBytes = 255  // one part of it
	maxNameParts = 16

	maxShownBytes = 200 // of anything that a message quotes from a contract
)
