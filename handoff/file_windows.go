package handoff

import (
	"errors"
	"io/fs"
	"os"
)

// noFollow says nothing: no sandbox is led from Windows (see cmd/aod).
const noFollow = 0

// linkInto isn't there: no sandbox is led from Windows (see cmd/aod).
func linkInto(*os.File, string, string) error { return errors.ErrUnsupported }

func othersOwn(fs.FileInfo) bool { return false }
