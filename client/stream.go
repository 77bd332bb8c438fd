package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"time"
)

// maxLine bounds a line of a stream in bytes. It is far more than the longest line that a
// server keeps of a log.
const maxLine = 1 << 20

var (
	errCut        = errors.New("the connection was cut")
	errNoProgress = errors.New("the list leads nowhere")
)

// stream reads an answer as it comes.
type stream struct {
	body  io.ReadCloser
	stop  context.CancelFunc
	quiet *time.Timer   // ends a silent connection; nil never does
	most  time.Duration // of silence
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	if n > 0 && s.quiet != nil {
		s.quiet.Reset(s.most)
	}
	return n, err
}

// lines reads complete lines without their line ends. Its Err is nil at the orderly end of
// the stream.
func (s *stream) lines() *bufio.Scanner {
	lines := bufio.NewScanner(s)
	lines.Buffer(make([]byte, 4<<10), maxLine)
	lines.Split(wholeLine)
	return lines
}

// close ends the connection.
func (s *stream) close() {
	s.stopQuiet()
	s.stop()
	_ = s.body.Close() // read only
}

func (s *stream) stopQuiet() {
	if s.quiet != nil {
		s.quiet.Stop()
	}
}

// wholeLine is a bufio.SplitFunc that never returns half a line.
func wholeLine(data []byte, atEOF bool) (int, []byte, error) {
	if end := bytes.IndexByte(data, '\n'); end >= 0 {
		return end + 1, bytes.TrimSuffix(data[:end], []byte("\r")), nil
	}
	if atEOF && len(data) > 0 {
		return 0, nil, errCut
	}
	return 0, nil, nil // more is to come
}

// errNotEvents is the error for an answer that isn't of its media type.
var errNotEvents = errors.New("it isn't a stream of ours")
