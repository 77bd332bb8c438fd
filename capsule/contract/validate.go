package contract

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xeipuuv/gojsonschema"
	"golang.org/x/sync/semaphore"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

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

// value is the payload as a JSON value; the zero Payload is an empty object.
func (p Payload) value() any {
	if p.object == nil {
		return map[string]any{}
	}
	return p.object
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

// separator can't occur in a payload: it is no UTF-8.
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
