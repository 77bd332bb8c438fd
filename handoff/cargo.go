package handoff

import (
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
)

// reference is a file that the arguments name.
type reference struct {
	pointer string // into the arguments
	name    string // clean, for the callee
	source  string // clean, in outgoing
}

// cargo is what a call is to take along.
type cargo struct {
	refs  []reference       // each name once
	wrong problems          // with names that make no reference
	known map[string]string // name -> source
	used  map[string]bool   // keys of ask.sources
}

// cargoOf lists the files that the arguments name, and returns the arguments with the
// clean names.
func (h *Handler) cargoOf(unit *Unit, asked ask, args contract.Payload) (cargo, contract.Payload, error) {
	found, clean, err := unit.Contract.Input.CleanFiles(args, contract.StageOutgoing)
	if err != nil {
		return cargo{}, args, err
	}
	load := cargo{known: map[string]string{}, used: map[string]bool{}}
	for _, ref := range found {
		if err := load.add(ref, asked, h.limits.Files); err != nil {
			return cargo{}, args, err
		}
	}
	if err := asked.allUsed(load.used); err != nil {
		return cargo{}, args, err
	}
	return load, clean, nil
}

// add makes a reference of what the contract found, up to a limit of them.
func (c *cargo) add(found contract.FileRef, asked ask, limit int) error {
	if fault.Is(found.Err, fault.TooLarge) {
		return refuse(RuleSize, fault.Public(found.Err))
	}
	source, err := asked.sourceOf(found)
	if err != nil {
		c.wrong.add(found.Pointer, err)
		return nil
	}
	c.used[found.Text], c.used[found.Name] = true, true
	return c.remember(reference{found.Pointer, found.Name, source}, limit)
}

func (c *cargo) remember(ref reference, limit int) error {
	source, known := c.known[ref.name]
	switch {
	case known && source != ref.source:
		c.wrong.add(ref.pointer, fault.New(fault.Input, "two files are to have the name %s", quote(ref.name)).WithHint("rename one"))
		return nil
	case known:
		return nil
	case len(c.refs) == limit:
		return refuse(RuleSize, fault.New(fault.TooLarge, "the arguments name more than %d files", limit).
			WithHint("hand over fewer, or one archive of them"))
	}
	c.known[ref.name] = ref.source
	c.refs = append(c.refs, ref)
	return nil
}

// allUsed refuses files that nothing in the arguments names: they would be left behind
// in silence.
func (a ask) allUsed(used map[string]bool) error {
	for name, source := range a.sources {
		if clean, err := contract.CleanName(source, contract.StageOutgoing); !used[name] && !used[source] && (err != nil || !used[clean]) {
			return fault.New(fault.Input, "`files` has a file that no field of the input names").
				WithHint("name it in a field that the contract declares with format file_path")
		}
	}
	return nil
}
