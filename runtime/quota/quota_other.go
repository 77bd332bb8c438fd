//go:build !linux

package quota

import "os"

// Check returns nil where a directory's file system keeps project quotas that this process may set, and else why not.
func Check(string) error { return ErrUnsupported }

// New returns the project of a directory.
func New(string) (Project, error) { return Project{}, ErrUnsupported }

// Of returns the project that a file has by Give; the zero one where it has none.
func Of(string) Project { return Project{} }

// Give makes a file or a directory the project's, and what is made in that from now on.
func (Project) Give(string) error { return ErrUnsupported }

// Limit bounds the bytes and the number of the project's files; 0 is no bound.
func (Project) Limit(_, _ int64) error { return ErrUnsupported }

// Met reports whether the project met its limit of bytes, or of files.
func (Project) Met() (bytes, files bool) { return false, false }

// Forget forgets what Met reported.
func (Project) Forget() {}

// Take takes an open file or directory out of its project.
func Take(*os.File) error { return nil }

// Sweep removes the limits of projects without a file.
func Sweep(string) error { return ErrUnsupported }
