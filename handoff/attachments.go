package handoff

import (
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
	refs  []reference          // each name once
	wrong findings             // also what is wrong with names
	known map[string]reference // by name
	used  map[string]bool      // texts and names that stand for a file of the request
}

// attachmentsOf lists the files that the arguments name, and returns the arguments with the
// clean names.
func (b *Broker) attachmentsOf(
	unit *Unit, asked Request, args contract.Payload,
) (attachments, contract.Payload, error) {
	found, clean, err := unit.Contract.Input.CleanFiles(args, contract.StageOutgoing)
	if err != nil {
		return attachments{}, args, err
	}
	files := attachments{wrong: findings{hint: b.filesHint()}, known: map[string]reference{}, used: map[string]bool{}}
	if err := files.addAll(found, asked, b.limits.Files); err != nil {
		return attachments{}, args, err
	}
	if clean, err = b.addCustomary(&files, found, asked, clean); err != nil {
		return attachments{}, args, err
	}
	further, err := asked.further(files.used)
	if err == nil {
		err = files.addAll(further, asked, b.limits.Files)
	}
	return files, clean, err
}

// addCustomary adds the files in `file` and `files` that the contract doesn't declare: those
// that the request has or that are written with their directory, and those that are there.
func (b *Broker) addCustomary(
	files *attachments, declared []contract.FileRef, asked Request, args contract.Payload,
) (contract.Payload, error) {
	var sure []contract.FileRef
	var maybe []reference
	for _, ref := range contract.CustomaryFiles(args, contract.StageOutgoing) {
		switch {
		case slices.ContainsFunc(declared, func(d contract.FileRef) bool { return d.Pointer == ref.Pointer }) ||
			ref.Err != nil:
		case asked.names(ref) || inOutgoing(ref.Text):
			sure = append(sure, ref)
		case ref.Text == ref.Name && b.caller.Outgoing != "":
			maybe = append(maybe, reference{pointer: ref.Pointer, name: ref.Name, source: ref.Name, maybe: true})
		}
	}
	if err := files.addAll(sure, asked, b.limits.Files); err != nil {
		return args, err
	}
	if len(files.refs)+len(maybe) <= b.limits.Files { // so many texts are no files
		for _, ref := range maybe {
			if err := files.remember(ref, b.limits.Files); err != nil {
				return args, err
			}
		}
	}
	if len(sure) == 0 {
		return args, nil
	}
	return args.WithNames(sure)
}

func (a *attachments) addAll(found []contract.FileRef, asked Request, limit int) error {
	for _, ref := range found {
		if err := a.add(ref, asked, limit); err != nil {
			return err
		}
	}
	return nil
}

// add adds a file that the arguments name. More files than the limit are refused.
func (a *attachments) add(found contract.FileRef, asked Request, limit int) error {
	if fault.Is(found.Err, fault.TooLarge) {
		return refuse(RuleSize, fault.Public(found.Err))
	}
	ref, err := asked.refer(found)
	if err != nil {
		a.wrong.add(found.Pointer, err)
		return nil
	}
	a.used[found.Text], a.used[found.Name] = true, true
	return a.remember(ref, limit)
}

// remember adds a reference, unless it is there.
func (a *attachments) remember(ref reference, limit int) error {
	same, known := a.known[ref.name]
	switch {
	case known && (same.source != ref.source || same.given != ref.given):
		a.wrong.add(ref.pointer, fault.New(fault.Input, "two files are to have the name %s", quote(ref.name)).
			WithHint("rename one"))
		return nil
	case known:
		return nil
	case len(a.refs) == limit:
		return refuse(RuleSize, fault.New(fault.TooLarge, "the arguments name more than %d files", limit).
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
