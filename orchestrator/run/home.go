package run

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/orchestrator/layout"
	"github.com/agent-on-demand/aod/runtime"
)

// Home is where a kind keeps what belongs to no single run.
type Home struct {
	Dir   string // for the runs' process alone, absolute
	Runs  string // where each run has its directory
	Owner string // tells what belongs to this home from that of another, on one engine
	Bin   string // for programs that are installed once; may be shared between homes
	Cards string // for model cards; may be shared between homes
	Disks *runtime.Disks
}

// LockHome locks a directory for the process that works in it. The error is safefs.ErrLocked where another one does,
// for longer than the kernel needs to take the lock from a process that was killed.
func LockHome(dir string) (*safefs.LockFile, error) {
	return safefs.AwaitLock(filepath.Join(dir, layout.Lock), lockWait)
}

// lockWait is how long to wait for the lock of a home. After kill -9 the kernel releases the lock only when it has
// removed the dead process.
const lockWait = 3 * time.Second

// OwnerOf returns the label of a home's containers. It is made once and stored in the home. The path would not do: two
// servers in containers of one engine may both have /data.
func OwnerOf(dir string) (string, error) {
	path := filepath.Join(dir, layout.Owner)
	raw, err := os.ReadFile(path)
	if err == nil && len(raw) > 0 {
		return string(raw), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read owner: %w", err)
	}
	owner := strings.ToLower(rand.Text()[:12])
	if err := safefs.Replace(path, []byte(owner),
		safefs.ReplaceOptions{Mode: 0o600, OneWriter: true, Synced: true}); err != nil {
		return "", StorageFault(err)
	}
	return owner, nil
}
