package worker

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
	"github.com/agent-on-demand/aod/orchestrator/feature/workers/wire"
	"github.com/agent-on-demand/aod/orchestrator/run"
)

// entry is what the journal has of a lease.
type entry struct {
	Nonce string `json:"nonce"`
	Offer string `json:"offer,omitempty"` // while there is no assignment

	Assignment *wire.Assignment `json:"assignment,omitempty"`
	Deadline   time.Time        `json:"deadline,omitzero"` // of the caller, by this machine's clock
	Record     *api.Record      `json:"record,omitempty"`  // nil: no attempt has begun
	Saved      json.RawMessage  `json:"saved,omitempty"`   // what the kind needs to go on
	Session    json.RawMessage  `json:"session,omitempty"` // what the kind needs to go on with it; nil: nothing yet
	Said       int64            `json:"said,omitempty"`    // how much the program has said by then
	Cancel     *wire.Cancel     `json:"cancel,omitempty"`
	Ended      *wire.Ended      `json:"ended,omitempty"`
	Told       bool             `json:"told,omitempty"` // the server has stored the end, or doesn't want it
}

// journal is a directory with a file a lease. What is written is on the disk before write returns.
type journal struct{ dir string }

func (j journal) path(e entry) string { return filepath.Join(j.dir, e.Nonce+".json") }

func (j journal) write(e entry) error {
	raw, err := strictjson.Encode(e)
	if err != nil {
		return err
	}
	return run.StorageFault(safefs.Replace(j.path(e), raw,
		safefs.ReplaceOptions{Mode: 0o600, OneWriter: true, Synced: true}))
}

func (j journal) remove(e entry) error { return safefs.IgnoreMissing(os.Remove(j.path(e))) }

// read returns the entries. One that can't be read is an Internal fault: what it stands for may still run.
func (j journal) read() (all []entry, err error) {
	files, err := os.ReadDir(j.dir)
	if err != nil {
		return nil, run.StorageFault(err)
	}
	for _, file := range files {
		nonce, is := strings.CutSuffix(file.Name(), ".json")
		if !is || strings.HasPrefix(file.Name(), safefs.TempPrefix) {
			continue
		}
		var e entry
		raw, err := os.ReadFile(filepath.Join(j.dir, file.Name()))
		if err = errors.Join(err, json.Unmarshal(raw, &e)); err != nil || e.Nonce != nonce {
			return nil, fault.Wrap(fault.Internal, err, "the journal has a file that can't be read: %q",
				filepath.Join(j.dir, file.Name())).
				WithHint("remove it, and its run is lost: the server tries it again")
		}
		all = append(all, e)
	}
	return all, nil
}
