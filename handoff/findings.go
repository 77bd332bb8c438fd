package handoff

import (
	"cmp"
	"slices"

	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
)

// findings are what is wrong with single fields.
type findings struct {
	hint string // for all of them
	list []fault.Finding
}

func (p *findings) add(pointer string, err error) {
	if len(p.list) > contract.MaxFindings {
		return
	}
	public := fault.Public(err)
	f := fault.Finding{Pointer: pointer, Message: public.Msg, Hint: public.Hint}
	if len(p.list) == contract.MaxFindings {
		f = fault.Finding{Message: "there are more problems with files than these"}
	}
	p.list = append(p.list, f)
}

// fault is nil where nothing is wrong.
func (p *findings) fault() error {
	if len(p.list) == 0 {
		return nil
	}
	slices.SortStableFunc(p.list[:min(len(p.list), contract.MaxFindings)], func(a, b fault.Finding) int { return cmp.Compare(a.Pointer, b.Pointer) })
	return fault.New(fault.Input, "the arguments name files that can't be handed over").
		WithHint("%s", p.hint).WithFindings(p.list)
}
