//go:build !linux

package egress

import "errors"

// splice is what Linux alone has.
func splice(_, _ any, _ func(n int)) error { return errors.ErrUnsupported }
