package handoff

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/httpwire"
)

// incoming is the directory in which a caller finds what its callees made.
//
// One handoff is placed at a time, in steps that a process may die between: its plan is
// written to the journal, its files are put into place, its record is written, the
// journal goes. A plan without a record is undone before anything else is placed; with
// a record it counts, and is never done again.
type incoming struct {
	dir     string // the caller's
	journal journal
	mu      sync.Mutex
}

// deliver puts the files of a handoff into the directory, each of them whole, and says
// where. Where one of their names is taken, all go to a directory of the handoff's own.
// Asked again it answers the same. The error is an Unavailable or Internal fault.
func (in *incoming) deliver(id string, files []Output) ([]PlacedFile, error) {
	if len(files) == 0 {
		return []PlacedFile{}, nil
	}
	if !httpwire.IsRunID(id) {
		return nil, fault.New(fault.Internal, "a handoff has no valid id")
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if placed, ok, err := in.journal.recorded(id); err != nil || ok {
		return placed, deliveryFault(err)
	}
	placed, err := in.deliverNew(id, files)
	return placed, deliveryFault(err)
}

func deliveryFault(err error) error {
	var known *fault.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return fault.Wrap(fault.Unavailable, withoutName(err), "the callee's files can't be put into %s", contract.StageIncoming).
		WithHint("the call itself is done: ask again for its result")
}

func (in *incoming) deliverNew(id string, files []Output) ([]PlacedFile, error) {
	root, err := openOwn(in.dir)
	if err != nil {
		return nil, fmt.Errorf("open incoming: %w", err)
	}
	defer func() { _ = root.Close() }() // holds no data
	if err := in.undo(root); err != nil {
		return nil, fmt.Errorf("undo what was half placed: %w", err)
	}
	p, err := placementFor(root, id, files)
	if err != nil {
		return nil, err
	}
	if err := in.journal.begin(p); err != nil {
		return nil, err
	}
	placed, err := p.place(root, files)
	if err == nil {
		err = in.journal.record(id, placed)
	}
	if err != nil {
		return nil, errors.Join(err, in.undo(root))
	}
	in.journal.end() // what stays behind is seen to be done by the next undo
	return placed, nil
}

// undo takes away what an interrupted placing has left.
func (in *incoming) undo(root *os.Root) error {
	p, ok, err := in.journal.begun()
	if err != nil || !ok {
		return err
	}
	if _, done, err := in.journal.recorded(p.ID); err != nil {
		return err
	} else if !done {
		if err := p.remove(root); err != nil {
			return err
		}
	}
	return in.journal.remove()
}
