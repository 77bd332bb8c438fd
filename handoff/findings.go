package handoff

import (
	"cmp"
	"slices"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
)

// findings collects what is wrong with files that the arguments name.
type findings struct {
	hint string // for all of them
	list []fault.Finding
}

func (f *findings) add(pointer string, err error) {
	switch public := fault.Public(err); {
	case len(f.list) < contract.MaxFindings:
		f.list = append(f.list, fault.Finding{Pointer: pointer, Message: public.Msg, Hint: public.Hint})
	case len(f.list) == contract.MaxFindings:
		f.list = append(f.list, fault.Finding{Message: "there are more problems with files than these"})
	}
}

// fault is an Input fault with the findings, or nil without any.
func (f *findings) fault() error {
	if len(f.list) == 0 {
		return nil
	}
	slices.SortStableFunc(f.list[:min(len(f.list), contract.MaxFindings)],
		func(a, b fault.Finding) int { return cmp.Compare(a.Pointer, b.Pointer) })
	return fault.New(fault.Input, "the arguments name files that can't be handed over").
		WithHint("%s", f.hint).WithFindings(f.list)
}
