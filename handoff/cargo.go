package handoff

import (
	"os"

	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
)

// reference is a file that the arguments name.
type reference struct {
	pointer string // into the arguments
	name    string // clean, for the callee
	source  string // clean, in outgoing; "" of one that was given
	given   *os.File
}

// cargo is what a call is to take along.
type cargo struct {
	refs  []reference          // each name once
	wrong problems             // with names that make no reference
	known map[string]reference // by name
	used  map[string]bool      // what names one of the request
}

// cargoOf lists the files that the arguments name, and returns the arguments with the
// clean names.
func (b *Broker) cargoOf(unit *Unit, asked Request, args contract.Payload) (cargo, contract.Payload, error) {
	found, clean, err := unit.Contract.Input.CleanFiles(args, contract.StageOutgoing)
	if err != nil {
		return cargo{}, args, err
	}
	load := cargo{wrong: problems{hint: b.filesHint()}, known: map[string]reference{}, used: map[string]bool{}}
	for _, ref := range found {
		if err := load.add(ref, asked, b.limits.Files); err != nil {
			return cargo{}, args, err
		}
	}
	if err := asked.allUsed(load.used); err != nil {
		return cargo{}, args, err
	}
	return load, clean, nil
}

// add makes a reference of what the contract found, up to a limit of them.
func (c *cargo) add(found contract.FileRef, asked Request, limit int) error {
	if fault.Is(found.Err, fault.TooLarge) {
		return refuse(RuleSize, fault.Public(found.Err))
	}
	ref, err := asked.refer(found)
	if err != nil {
		c.wrong.add(found.Pointer, err)
		return nil
	}
	c.used[found.Text], c.used[found.Name] = true, true
	return c.remember(ref, limit)
}

func (c *cargo) remember(ref reference, limit int) error {
	same, known := c.known[ref.name]
	switch {
	case known && (same.source != ref.source || same.given != ref.given):
		c.wrong.add(ref.pointer, fault.New(fault.Input, "two files are to have the name %s", quote(ref.name)).WithHint("rename one"))
		return nil
	case known:
		return nil
	case len(c.refs) == limit:
		return refuse(RuleSize, fault.New(fault.TooLarge, "the arguments name more than %d files", limit).
			WithHint("hand over fewer, or one archive of them"))
	}
	c.known[ref.name] = ref
	c.refs = append(c.refs, ref)
	return nil
}

// sources are the files that have to be opened in outgoing.
func (c cargo) sources() []string {
	var names []string
	for _, ref := range c.refs {
		if ref.given == nil {
			names = append(names, ref.source)
		}
	}
	return names
}
