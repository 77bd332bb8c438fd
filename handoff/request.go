package handoff

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
)

// Request is a call that a caller asks for.
type Request struct {
	Target string          // the unit
	Args   json.RawMessage // one JSON object; empty: one without fields
	// Sources says which file of outgoing is meant by a name in Args. One that Args don't name
	// goes along under its name.
	Sources map[string]string
	// Files are regular files that the caller has opened, by their names in Args. Start
	// reads each from its present offset and leaves it open. A file that Args don't name is
	// refused. The broker opens files that aren't given in outgoing; where the caller has no
	// such directory, it refuses the call.
	Files   map[string]*os.File
	Timeout time.Duration // 0: the unit's
	Key     string        // idempotency key, the caller's own; "": none
	Step    string        // of a flow that calls: the address; "": the caller is none
	Foreign bool          // of another orchestrator's program: any text may name a file of outgoing
	Recall  bool          // a call of this key that succeeded in an earlier attempt is joined
}

// arguments decodes the arguments, of at most limit bytes, and checks them against the callee's contract.
func (r Request) arguments(ctx context.Context, unit *Unit, limit int64) (contract.Payload, error) {
	raw := r.Args
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	args, err := contract.Decode(raw, limit)
	if fault.Is(err, fault.TooLarge) {
		return args, refuse(RuleSize, fault.Public(err))
	}
	if err != nil {
		return args, err
	}
	if args, err = r.nameFiles(unit.Contract.Input, args); err != nil {
		return args, err
	}
	named, err := withCustomaryNames(args)
	if err != nil {
		return args, err
	}
	found, err := unit.Contract.Input.ValidateContext(ctx, named)
	if err != nil {
		return args, err
	}
	if len(found) > 0 {
		return args, fault.New(fault.Input, "the arguments break the contract of %s", quote(unit.Name)).
			WithHint("GET /capsules/%s/schema shows what it takes", unit.Name).WithFindings(found)
	}
	return args, nil
}

// nameFiles sets the file fields that the arguments leave out and Sources has.
func (r Request) nameFiles(input *contract.Schema, args contract.Payload) (contract.Payload, error) {
	var err error
	for _, field := range input.FileFields() {
		source, given := r.Sources[field]
		if _, set := args.Get(field); !given || set || strings.Contains(field, ".") {
			continue
		}
		if args, err = args.With(field, source); err != nil {
			return args, err
		}
	}
	return args, nil
}

// refer finds the file that a name in the arguments means.
func (r Request) refer(found contract.FileRef) (reference, error) {
	ref := reference{pointer: found.Pointer, name: found.Name, source: found.Name}
	if found.Err != nil {
		return ref, found.Err
	}
	for _, known := range []string{found.Text, found.Name} {
		if file := r.Files[known]; file != nil {
			ref.given, ref.source = file, ""
			return ref, nil
		}
		if source, ok := r.Sources[known]; ok {
			var err error
			ref.source, err = contract.CleanName(source, contract.StageOutgoing)
			return ref, err
		}
	}
	return ref, nil
}

// names reports whether the request has a file for the reference.
func (r Request) names(found contract.FileRef) bool {
	for _, known := range []string{found.Text, found.Name} {
		if _, ok := r.Sources[known]; ok || r.Files[known] != nil {
			return true
		}
	}
	return false
}

// further lists the sources that nothing in the arguments names, each as a reference of its
// own. It refuses files that were given and aren't named: the callee would never get them.
func (r Request) further(used map[string]bool) ([]contract.FileRef, error) {
	for name := range r.Files {
		if !used[name] {
			return nil, fault.New(fault.Input, "`files` has a file that no field of the input names").
				WithHint("name it in a field that the contract declares with format file_path")
		}
	}
	var further []contract.FileRef
	for _, name := range slices.Sorted(maps.Keys(r.Sources)) {
		source, err := contract.CleanName(r.Sources[name], contract.StageOutgoing)
		if used[name] || used[r.Sources[name]] || err == nil && used[source] {
			continue
		}
		clean, err := contract.CleanName(name, contract.StageInput)
		further = append(further, contract.FileRef{Text: name, Name: clean, Err: err})
	}
	return further, nil
}

// withCustomaryNames has the names of files in `file` and `files` that are written with their
// directory: the callee gets those.
func withCustomaryNames(args contract.Payload) (contract.Payload, error) {
	refs := slices.DeleteFunc(contract.CustomaryFiles(args, contract.StageOutgoing), func(ref contract.FileRef) bool {
		return ref.Err != nil || !inOutgoing(ref.Text)
	})
	if len(refs) == 0 {
		return args, nil
	}
	return args.WithNames(refs)
}

// inOutgoing reports whether a text is a path in the caller's directory of files.
func inOutgoing(text string) bool {
	return strings.HasPrefix(text, string(contract.StageOutgoing)+"/")
}
