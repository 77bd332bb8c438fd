package sdk

import (
	"embed"
	"io/fs"
)

// The pattern names files: of a directory, go:embed leaves out __init__.py.
//
//go:embed python/aod/*.py
var files embed.FS

// Python returns the Python package aod: its modules, at the top, and nothing
// that the interpreter left beside them.
func Python() fs.FS {
	sub, err := fs.Sub(files, "python/aod")
	if err != nil {
		panic("sdk: " + err.Error()) // the name is a constant and valid
	}
	return sub
}
