package au

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"sync"

	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/schemas"
)

// MaxCardBytes bounds a model card for ParseCard.
const MaxCardBytes = 256 << 10

const cardHint = "compare it with schemas/describe.schema.json; section 6 of the Agentic Unit specification explains the fields"

// Card is the model card of a unit (specification, section 6). It is immutable.
type Card struct {
	Name         string // such as "agx-ocr"
	Version      string // a semantic version
	Description  string // for a person; may have line breaks
	Capabilities []string
	Inputs       []Media     // what it reads from stdin; at least one
	Outputs      []Media     // what it writes to stdout; at least one
	Config       []Parameter // sorted by name

	// ExitCodes names the unit's own exit codes, 3 to 128. The specification leaves these
	// codes to the unit, and its card has no field for their names: "exit_codes" is our
	// addition, which units may omit.
	ExitCodes map[int]string

	// Warnings are unknown fields, which may be misspelt.
	Warnings []fault.Finding

	raw json.RawMessage
}

// Media is a kind of bytes.
type Media struct {
	Type        string // or a range: "image/*", "*/*"; may have parameters
	Description string
}

// JSON returns the card as the unit printed it, without the space around it.
func (c *Card) JSON() json.RawMessage { return bytes.Clone(c.raw) }

// Parameter returns the parameter of that name, and whether the card has it.
func (c *Card) Parameter(name string) (Parameter, bool) {
	for _, p := range c.Config {
		if p.Name == name {
			return p, true
		}
	}
	return Parameter{}, false
}

// NeedsModel reports whether the unit accepts a model file.
func (c *Card) NeedsModel() bool {
	_, ok := c.Parameter(modelPath)
	return ok
}

// cardSchema is compiled once. It is our own schema, so a compile error is a mistake of the
// build.
var cardSchema = sync.OnceValue(func() *contract.Schema {
	schema, findings := contract.Compile(schemas.Describe())
	if schema == nil {
		panic("au: the schema of model cards doesn't compile: " + findings[0].String())
	}
	return schema
})

// ParseCard reads the output of --describe: one JSON object of at most MaxCardBytes that
// keeps schemas/describe.schema.json. The error is a *fault.Error, TooLarge or Input; an
// Input fault has all violations as findings, with pointers into the card. No finding shows
// a value.
func ParseCard(raw []byte) (*Card, error) {
	if len(raw) > MaxCardBytes {
		return nil, fault.New(fault.TooLarge, "the model card has %d bytes, the limit is %d", len(raw), MaxCardBytes).
			WithHint("describe less: a card says what the unit takes and gives")
	}
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '{' {
		return nil, badCard([]fault.Finding{{Message: "expected one JSON object and nothing before it", Hint: "print the card alone on stdout, and all else on stderr"}})
	}
	payload, err := contract.Decode(raw, MaxCardBytes)
	if err != nil {
		return nil, badCard(unreadable(err))
	}
	if findings := cardSchema().Validate(payload); len(findings) > 0 {
		return nil, badCard(findings)
	}
	return readCard(payload, raw), nil
}

func badCard(findings []fault.Finding) error {
	message := "the model card is not valid: " + findings[0].String()
	if len(findings) > 1 {
		message += " (and " + strconv.Itoa(len(findings)-1) + " more)"
	}
	return fault.New(fault.Input, "%s", message).WithHint("%s", cardHint).WithFindings(findings)
}

// unreadable turns an error of contract.Decode, which speaks of payloads, into a finding.
func unreadable(err error) []fault.Finding {
	public := fault.Public(err)
	f := fault.Finding{Message: strings.Replace(public.Msg, "the payload", "it", 1), Hint: public.Hint}
	if len(public.Findings) > 0 {
		f.Pointer = public.Findings[0].Pointer
	}
	return []fault.Finding{f}
}
