package orchestrator

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"

	"github.com/agent-on-demand/aod/fault"
)

// about says in a log what went wrong. An error of the file system tells names, which
// capsules and their callers choose: of it only the operation and the reason are logged.
func about(err error) slog.Attr {
	if known := (*fault.Error)(nil); errors.As(err, &known) && known.Kind == fault.Input {
		return slog.String("error", "input refused") // its text may name what a client sent
	}
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return slog.String("error", path.Op+": "+path.Err.Error())
	case errors.As(err, &link):
		return slog.String("error", link.Op+": "+link.Err.Error())
	}
	return slog.Any("error", err)
}
