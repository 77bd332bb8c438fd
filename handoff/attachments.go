package handoff

import (
	"cmp"
	"os"
	"slices"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
)

// reference is a file that the arguments name.
type reference struct {
	pointer string   // into the arguments
	name    string   // clean, for the callee
	source  string   // clean, in outgoing; "" of one that was given
	given   *os.File // nil: not given
	maybe   bool     // it may be no file: then the arguments have a text there
}

// attachments are the files that go along with a call.
type attachments struct {
	asked Request
	limit int                  // of files
	refs  []reference          // each name once
	wrong findings             // also what is wrong with names
	known map[string]reference // by name
	used  map[string]bool      // texts and names that stand for a file of the request
}

// attachmentsOf lists the files that the arguments name, and returns the arguments with the
// clean names.
func (o outgoing) attachmentsOf(
	unit *Unit, asked Request, args contract.Payload,
) (attachments, contract.Payload, error) {
	found, clean, err := unit.Contract.Input.CleanFiles(args, contract.StageOutgoing)
	if err != nil {
		return attachments{}, args, err
	}
	files := attachments{
		asked: asked, limit: o.maxFiles, wrong: findings{hint: o.hint()},
		known: map[string]reference{}, used: map[string]bool{},
	}
	if err := files.addAll(found); err != nil {
		return attachments{}, args, err
	}
	if clean, err = files.addCustomary(found, clean, o.dir != ""); err != nil {
		return attachments{}, args, err
	}
	further, err := asked.further(files.used)
	if err == nil {
		err = files.addAll(further)
	}
	return files, clean, err
}

// addCustomary adds the files in `file` and `files`, or in any field of a foreign request, that the
// contract doesn't declare: those that the request has or that are written with their directory, and
// those that are there.
func (a *attachments) addCustomary(
	declared []contract.FileRef, args contract.Payload, haveDir bool,
) (contract.Payload, error) {
	var sure []contract.FileRef
	var maybe []reference
	texts := contract.CustomaryFiles
	if a.asked.Foreign {
		texts = contract.TextFiles
	}
	for _, ref := range texts(args, contract.StageOutgoing) {
		switch {
		case slices.ContainsFunc(declared, func(d contract.FileRef) bool { return d.Pointer == ref.Pointer }) ||
			ref.Err != nil:
		case a.asked.names(ref) || inOutgoing(ref.Text):
			sure = append(sure, ref)
		case ref.Text == ref.Name && haveDir:
			maybe = append(maybe, reference{pointer: ref.Pointer, name: ref.Name, source: ref.Name, maybe: true})
		}
	}
	if err := a.addAll(sure); err != nil {
		return args, err
	}
	if len(a.refs)+len(maybe) <= a.limit { // so many texts aren't files
		for _, ref := range maybe {
			if err := a.remember(ref); err != nil {
				return args, err
			}
		}
	}
	if len(sure) == 0 {
		return args, nil
	}
	return args.WithNames(sure)
}

func (a *attachments) addAll(found []contract.FileRef) error {
	for _, ref := range found {
		if err := a.add(ref); err != nil {
			return err
		}
	}
	return nil
}

// add adds a file that the arguments name. More files than the limit are refused.
func (a *attachments) add(found contract.FileRef) error {
	if fault.Is(found.Err, fault.TooLarge) {
		return refuse(RuleSize, fault.Public(found.Err))
	}
	ref, err := a.asked.refer(found)
	if err != nil {
		a.wrong.add(found.Pointer, err)
		return nil
	}
	a.used[found.Text], a.used[found.Name] = true, true
	return a.remember(ref)
}

// remember adds a reference, unless it is there.
func (a *attachments) remember(ref reference) error {
	same, known := a.known[ref.name]
	switch {
	case known && (same.source != ref.source || same.given != ref.given):
		a.wrong.add(ref.pointer, fault.New(fault.Input, "two files are to have the name %s", quote(ref.name)).
			WithHint("rename one"))
		return nil
	case known:
		return nil
	case len(a.refs) == a.limit:
		return refuse(RuleSize, fault.New(fault.TooLarge, "the arguments name more than %d files", a.limit).
			WithHint("hand over fewer, or one archive of them"))
	}
	a.known[ref.name] = ref
	a.refs = append(a.refs, ref)
	return nil
}

// sources are the names of the files that have to be opened in outgoing.
func (a attachments) sources() []string {
	var names []string
	for _, ref := range a.refs {
		if ref.given == nil {
			names = append(names, ref.source)
		}
	}
	return names
}

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
