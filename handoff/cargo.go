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
	refs  []reference // each name once
	wrong problems    // with names that make no reference
}

// cargoOf lists the files that the arguments name, and returns the arguments with the
// clean names.
func (h *Handler) cargoOf(unit *Unit, asked ask, args contract.Payload) (cargo, contract.Payload, error) {
	found := unit.Contract.Input.FileRefsAt(args, contract.StageOutgoing)
	if len(found) == 0 {
		return cargo{}, args, asked.allUsed(nil)
	}
	texts, err := newDocument(args)
	if err != nil {
		return cargo{}, args, err
	}
	l := lister{asked: asked, limit: h.limits.Files, texts: texts, known: map[string]string{}, used: map[string]bool{}}
	for _, ref := range found {
		if err := l.add(ref); err != nil {
			return cargo{}, args, err
		}
	}
	if err := asked.allUsed(l.used); err != nil {
		return cargo{}, args, err
	}
	args, err = texts.payload(args)
	return l.cargo, args, err
}

// lister makes references of what the contract found.
type lister struct {
	asked ask
	limit int
	texts *document
	known map[string]string // name -> source
	used  map[string]bool   // keys of asked.sources
	cargo cargo
}

func (l *lister) add(ref contract.FileRef) error {
	if ref.Err != nil {
		if fault.Is(ref.Err, fault.TooLarge) {
			return refuse(RuleSize, fault.Public(ref.Err))
		}
		l.cargo.wrong.add(ref.Pointer, ref.Err)
		return nil
	}
	text, ok := l.texts.clean(ref.Pointer, ref.Name)
	if !ok {
		l.cargo.wrong.add("", fault.New(fault.Input, "a file is named in a field too deep, or with too long a name, to be found again").WithHint("name it further up"))
		return nil
	}
	source, err := l.asked.sourceOf(text, ref.Name)
	if err != nil {
		l.cargo.wrong.add(ref.Pointer, err)
		return nil
	}
	l.used[text], l.used[ref.Name] = true, true
	return l.remember(reference{ref.Pointer, ref.Name, source})
}

func (l *lister) remember(ref reference) error {
	source, known := l.known[ref.name]
	switch {
	case known && source != ref.source:
		l.cargo.wrong.add(ref.pointer, fault.New(fault.Input, "two files are to have the name %s", quote(ref.name)).WithHint("rename one"))
		return nil
	case known:
		return nil
	case len(l.cargo.refs) == l.limit:
		return refuse(RuleSize, fault.New(fault.TooLarge, "the arguments name more than %d files", l.limit).
			WithHint("hand over fewer, or one archive of them"))
	}
	l.known[ref.name] = ref.source
	l.cargo.refs = append(l.cargo.refs, ref)
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
