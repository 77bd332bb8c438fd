package runtime

import (
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// unwritable is the fault of a host that has no room or no permission for a run.
func unwritable(err error) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(fault.Unavailable, err, "the run's directory can't be written").
		WithHint("is the disk full? --data DIR puts runs elsewhere")
}

// tooLarge says that a file is over its limit.
type tooLarge struct{ size, limit int64 }

func (e *tooLarge) Error() string {
	return fmt.Sprintf("has %d bytes, the limit is %d", e.size, e.limit)
}

// readRegular reads a file that untrusted code may have put there: never through a
// link, never anything but a regular file, never more than max bytes.
func readRegular(dir, name string, maxBytes int64) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // read only
	f, info, err := safefs.OpenRegular(root, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read only
	raw, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if int64(len(raw)) > maxBytes {
		return nil, &tooLarge{max(info.Size(), int64(len(raw))), maxBytes}
	}
	return raw, nil
}

// mkdir makes a directory whose mode doesn't depend on the umask: what is inside is
// for the container's user, and the run's directory above keeps others out.
func mkdir(path string, mode fs.FileMode) error {
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// writeFile writes a file whose mode doesn't depend on the umask.
func writeFile(path string, content []byte, mode fs.FileMode) error {
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}
