package safefs

import (
	"errors"
	"io/fs"
	"strings"
)

// Reason returns the innermost cause of a file error, without the path, for a message that
// names the path already.
func Reason(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return strings.TrimSpace(err.Error())
}
