//go:build !linux

package safefs

import "errors"

// Exchange gives two files or directories each other's name, at one moment. This system can't.
func Exchange(string, string) error { return errors.ErrUnsupported }
