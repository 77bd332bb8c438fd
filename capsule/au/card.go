package au

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"sync"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/schemas"
)

// MaxCardBytes bounds a model card for ParseCard.
const MaxCardBytes = 256 << 10

const cardHint = "compare it with schemas/describe.schema.json; section 6 of the Agentic Unit specification explains " +
	"the fields"

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
	// Odd is what breaks describe.schema.json in a card that can be used nevertheless. It is
	// empty after ParseCard.
	Odd []fault.Finding

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

// Our own schemas are compiled once.
var (
	cardSchema    = sync.OnceValue(func() *contract.Schema { return compiled(schemas.Describe()) })
	lenientSchema = sync.OnceValue(func() *contract.Schema { return compiled(schemas.DescribeLenient()) })
)

// compiled compiles a schema of our own: an error is a mistake of the build.
func compiled(raw []byte) *contract.Schema {
	schema, findings := contract.Compile(raw)
	if schema == nil {
		panic("au: a schema of model cards doesn't compile: " + findings[0].String())
	}
	return schema
}

// ParseCard reads the output of --describe: one JSON object of at most MaxCardBytes that
// keeps schemas/describe.schema.json. The error is a *fault.Error, TooLarge or Input; an
// Input fault has all violations as findings, with pointers into the card. No finding shows
// a value.
func ParseCard(raw []byte) (*Card, error) {
	card, err := parseCard(raw, cardSchema())
	if err == nil && len(card.Odd) > 0 {
		return nil, badCard(card.Odd)
	}
	return card, err
}

// ReadCard is ParseCard for a unit that is to be run: it takes a card that is odd but whole,
// which keeps schemas/describe-lenient.schema.json. What ParseCard would refuse is in Odd.
func ReadCard(raw []byte) (*Card, error) { return parseCard(raw, lenientSchema()) }

func parseCard(raw []byte, rules *contract.Schema) (*Card, error) {
	if len(raw) > MaxCardBytes {
		return nil, fault.New(fault.TooLarge, "the model card has %d bytes, the limit is %d", len(raw), MaxCardBytes).
			WithHint("describe less: a card says what the unit takes and gives")
	}
	raw = bytes.TrimSpace(raw)
	payload, err := decodeCard(raw)
	if err != nil {
		return nil, err
	}
	if findings := rules.Validate(payload); len(findings) > 0 {
		return nil, badCard(findings)
	}
	card := readCard(payload, raw)
	if twice := card.flagsTwice(); len(twice) > 0 {
		return nil, badCard(twice)
	}
	for _, odd := range append(cardSchema().Validate(payload), card.breaches()...) {
		odd.Warning = true
		card.Odd = append(card.Odd, odd)
	}
	return card, nil
}

func decodeCard(raw []byte) (payload contract.Payload, err error) {
	if len(raw) == 0 || raw[0] != '{' {
		return payload,
			badCard([]fault.Finding{{
				Message: "expected one JSON object and nothing before it",
				Hint:    "print the card alone on stdout, and all else on stderr",
			}})
	}
	if payload, err = contract.Decode(raw, MaxCardBytes); err != nil {
		return payload, badCard(unreadable(err))
	}
	return payload, nil
}

func badCard(findings []fault.Finding) error {
	return fault.New(fault.Input, "the model card is not valid: %s", firstOf(findings)).WithHint("%s", cardHint).
		WithFindings(findings)
}

// OddText says in one line what is odd in the card; "" is nothing.
func (c *Card) OddText() string {
	if len(c.Odd) == 0 {
		return ""
	}
	return "its model card is odd: " + firstOf(c.Odd)
}

// firstOf is the first finding, and the number of the others.
func firstOf(findings []fault.Finding) string {
	if len(findings) == 1 {
		return findings[0].String()
	}
	return findings[0].String() + " (and " + strconv.Itoa(len(findings)-1) + " more)"
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
