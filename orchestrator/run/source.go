package run

import (
	"errors"
	"io"
)

// Source is a reader that remembers its error. After a copy it tells a failed read from a
// failed write.
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
