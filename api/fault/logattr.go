package fault

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
)

// LogAttr says in a log what went wrong. An error of the file system tells names, which
// capsules and their callers choose: of it only the operation and the reason are logged.
func LogAttr(err error) slog.Attr {
	if known := (*Error)(nil); errors.As(err, &known) && known.Kind == Input {
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
