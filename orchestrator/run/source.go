package run

import (
	"errors"
	"io"
)

// Source is a reader that remembers its own error, to tell it from those of who writes.
type Source struct {
	io.Reader
	Err error // the first, but for io.EOF
}

// Read implements io.Reader.
func (s *Source) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		s.Err = err
	}
	return n, err
}
