//go:build !linux

package safefs

import "errors"

// syncFileSystem says that only Linux can do it.
func syncFileSystem(string) (done bool, err error) { return false, nil }

// Exchange gives two files or directories each other's name, at one moment. This system can't.
func Exchange(string, string) error { return errors.ErrUnsupported }
