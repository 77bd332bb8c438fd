package orchestrator

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// keepTrueInput writes the input of a run whose record has it masked to the disk, for the next
// process. A run that no other process goes on with needs none.
func (j *job) keepTrueInput() error {
	if !j.Durable || !j.Record.InputMasked {
		return nil
	}
	err := safefs.Replace(trueInputOf(j.Run), j.Input.Payload.JSON(), safefs.ReplaceOptions{Mode: 0o600, Synced: true})
	if err == nil {
		err = safefs.Sync(filepath.Dir(j.Dir))
	}
	return run.StorageFault(err)
}

// acceptedInput returns the input of a stored run as it was accepted. The error is a fault.
func acceptedInput(r *run.Run, stored []byte) ([]byte, error) {
	if !r.Record.InputMasked {
		return orEmpty(stored), nil
	}
	input, err := readTrueInput(trueInputOf(r))
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err,
			"input lost: it was masked in the record, and the file with the true one can't be read").
			WithHint("submit it again; a backup doesn't have such files")
	}
	return input, nil
}

func readTrueInput(path string) (input []byte, err error) {
	f, info, err := safefs.OpenNamed(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, info.Size()))
}

// dropTruth removes the files with the true input and the true names of the output files when
// nobody will read them any more. What it can't remove goes with the rest of the directory that
// isn't kept.
func (j *job) dropTruth() {
	if !j.Durable {
		return
	}
	if err := errors.Join(safefs.IgnoreMissing(os.Remove(trueInputOf(j.Run))),
		safefs.IgnoreMissing(os.Remove(trueNamesOf(j.Run)))); err != nil {
		j.loop.logger.Warn("true input or names not removed yet", "run", j.ID, fault.LogAttr(err))
	}
}

func trueInputOf(r *run.Run) string { return filepath.Join(r.Dir, layout.TrueInput) }
