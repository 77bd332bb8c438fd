//go:build !linux

package main

import (
	"errors"
	"os/exec"
)

// badDisk asks the kernel of Linux: no test here has one.
type badDisk struct{}

func (*badDisk) start(*exec.Cmd) error { return errors.ErrUnsupported }
