package contract

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xeipuuv/gojsonschema"
	"golang.org/x/sync/semaphore"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// FileName is the name of a contract within a capsule's directory.
const FileName = "schema.json"

// Contract is what a capsule takes and what it gives back.
type Contract struct{ Input, Output *Schema }

// Schema is one side of a contract, or a schema of its own. It is safe for
// concurrent use.
type Schema struct {
	plain    []byte
	root     *node
	compiled *gojsonschema.Schema
}

// Raw returns the schema as its author wrote it.
func (s *Schema) Raw() json.RawMessage { return bytes.Clone(s.root.text) }

// topKeys may stand at the top of a schema.json.
var topKeys = map[string]bool{
	"input": true, "output": true, "$schema": true, "$id": true, "$defs": true,
	"definitions": true, "title": true, "description": true, "$comment": true,
}

// Parse compiles a schema.json of at most 256 KiB. It reports every problem at
// once; the contract is nil when one of them is not a warning. Findings carry the
// file's name and a pointer into it, or a line where the file isn't JSON.
//
// A reference is resolved against the whole file: "#/definitions/x", "#/$defs/x",
// "#/input/properties/y".
func Parse(raw []byte) (*Contract, []fault.Finding) {
	c := newCompiler(FileName, true)
	top, ok := c.document.read(raw)
	if !ok {
		return nil, c.report.findings
	}
	c.document.declare(top["input"], "/input")
	c.document.declare(top["output"], "/output")
	c.top(top)
	contract := &Contract{Input: c.sideOf(top, "input"), Output: c.sideOf(top, "output")}
	c.measure()
	if !c.finish(contract.Input, "/input") || !c.finish(contract.Output, "/output") {
		return nil, c.report.findings
	}
	c.checkDefaults()
	c.written(bytes.Clone(raw), nil)
	return contract, c.report.findings
}

// Compile compiles one schema that stands on its own, under the same rules. Its
// findings carry no file.
func Compile(raw []byte) (*Schema, []fault.Finding) {
	c := newCompiler("", false)
	if _, ok := c.document.read(raw); !ok {
		return nil, c.report.findings
	}
	s := &Schema{root: c.schema(c.document.value, "")}
	c.measure()
	if !c.finish(s, "") {
		return nil, c.report.findings
	}
	c.written(bytes.Clone(raw), nil)
	return s, c.report.findings
}

// Plain returns the schema as JSON Schema that stands on its own, for readers that know no
// schema.json: types have their long names, and what references lead to is under "$defs".
// All else is as its author wrote it, the format file_path too.
func (s *Schema) Plain() json.RawMessage { return bytes.Clone(s.plain) }

// heavy lets large validations take turns: the errors of one may fill hundreds of
// megabytes before they can be counted.
var heavy = semaphore.NewWeighted(1)

// Validate reports every violation of the schema, in the order of their pointers,
// at most MaxFindings and one that counts the rest. A finding's pointer leads into
// the payload; where a field is missing it leads to the object that lacks it. No
// finding shows a value. A payload that would take too long to check gets one
// finding that says so.
//
// Strings with the format file_path are checked as strings only; see CheckFiles.
func (s *Schema) Validate(p Payload) []fault.Finding {
	found, _ := s.ValidateContext(context.Background(), p) // it has no end
	return found
}

// ValidateContext is Validate for what strangers send. When ctx ends first, it returns its
// cause; gojsonschema can't be stopped and goes on for the second or two that its bounds allow.
func (s *Schema) ValidateContext(ctx context.Context, p Payload) ([]fault.Finding, error) {
	steps, ok := walk(s.root, p.value(), nil)
	if !ok {
		return []fault.Finding{{Message: "the payload is too large for this contract: checking it would take too " +
			"many steps", Hint: "send less in one call, or put the data in a file"}}, nil
	}
	if steps <= heavySteps {
		return s.validate(p), nil
	}
	if heavy.Acquire(ctx, 1) != nil {
		return nil, context.Cause(ctx)
	}
	found := make(chan []fault.Finding, 1)
	go func() {
		defer heavy.Release(1)
		found <- s.validate(p)
	}()
	select {
	case list := <-found:
		return list, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *Schema) validate(p Payload) []fault.Finding {
	result, err := s.judge(p)
	if err != nil {
		return []fault.Finding{{
			Message: "the payload could not be checked against the contract",
			Hint:    "simplify the contract",
		}}
	}
	found := findings(result)
	if len(found) == 0 && !result.Valid() { // whatever it is, it isn't valid
		found = []fault.Finding{{Message: "the payload breaks the contract"}}
	}
	return found
}

// judge runs gojsonschema. The recover is for its dereferences after errors that
// it takes for impossible; none is known to be reachable.
func (s *Schema) judge(p Payload) (result *gojsonschema.Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			result, err = nil, errors.New("the schema library gave up on it")
		}
	}()
	return s.compiled.Validate(gojsonschema.NewRawLoader(p.value()))
}

// violation is an error of gojsonschema whose finding isn't written yet.
type violation struct {
	pointer string
	err     gojsonschema.ResultError
}

func findings(result *gojsonschema.Result) []fault.Finding {
	var list []violation
	for _, e := range result.Errors() {
		if !redundant[e.Type()] {
			list = append(list, violation{pointer: pointerOf(e), err: e})
		}
	}
	slices.SortStableFunc(list, func(a, b violation) int { return cmp.Compare(a.pointer, b.pointer) })
	var found []fault.Finding
	seen := map[fault.Finding]bool{}
	for i, v := range list {
		if len(found) == MaxFindings {
			found = append(found, fault.Finding{Message: fmt.Sprintf("%d more violations are not shown", len(list)-i)})
			break
		}
		f := explain(v.err)
		f.Pointer = v.pointer
		if !seen[f] {
			found = append(found, f)
		}
		seen[f] = true
	}
	slices.SortStableFunc(found[:min(len(found), MaxFindings)], func(a, b fault.Finding) int {
		return cmp.Or(cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(a.Message, b.Message))
	})
	return found
}

// separator can't occur in a payload: it isn't UTF-8.
const separator = "\xff"

// pointerOf leads to the place of a violation; that of a field too much is the field.
func pointerOf(e gojsonschema.ResultError) string {
	path := strings.Split(e.Context().String(separator), separator)[1:]
	if e.Type() == "additional_property_not_allowed" {
		if key, ok := e.Details()["property"].(string); ok {
			path = append(path, key)
		}
	}
	return strictjson.Pointer(path...)
}

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
	// of all together: each instruction takes some hundred bytes, and every expression is compiled twice
	maxAllPatternOps = 10 * maxPatternOps
	maxExpansion     = 4096 // evaluations that one value can cause without going into it
	maxInPlace       = 64   // how long a chain of those may be, each a stack frame

	// maxSteps is what one validation may cost. gojsonschema keeps about 800 bytes and
	// takes 3 µs for each step that fails, so the worst payload takes some 300 MB for
	// a second or two. A payload of 1 MiB that isn't a mere list of tiny numbers costs a
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
