package handoff

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

// incoming is the directory in which a caller finds what its callees made.
//
// The files of one handoff are placed at a time. The process may die between any two steps:
// the placement is written to the journal, the files are placed, the record is written, the
// placement is removed. A placement without a record is undone before anything else is
// placed. One with a record counts, and is never done again.
type incoming struct {
	dir     string // the caller's
	journal journal
	mu      sync.Mutex
}

// deliver puts the files of a handoff into the directory, each of them whole, and says
// where. If one of their names is taken, all go to a directory of the handoff's own. Called
// again it returns the same. The error is an Unavailable or Internal fault.
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

// deliveryFault is an Unavailable fault, unless the error is a fault already.
func deliveryFault(err error) error {
	var known *fault.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return fault.Wrap(fault.Unavailable, withoutName(err), "the callee's files can't be put into %s",
		contract.StageIncoming).
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
	if err := in.journal.write(placementFile, p); err != nil {
		return nil, err
	}
	placed, err := p.place(root, files)
	if err == nil {
		err = in.journal.record(id, placed)
	}
	if err != nil {
		return nil, errors.Join(err, in.undo(root))
	}
	_ = in.journal.remove() // what stays behind is seen to be done by the next undo
	return placed, nil
}

// undo removes the files of a placement that was interrupted.
func (in *incoming) undo(root *os.Root) error {
	var p placement
	if ok, err := in.journal.read(placementFile, &p); err != nil || !ok {
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
