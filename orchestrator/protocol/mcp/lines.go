package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// lines reads the lines of a client that are JSON, and passes over the others.
type lines struct {
	in      *bufio.Reader
	most    int
	taken   func(line []byte) []byte // what is read of a line
	dropped func(reason string)
	rest    []byte
}

func newLines(in io.Reader, most int, taken func([]byte) []byte, dropped func(string)) *lines {
	return &lines{in: bufio.NewReaderSize(in, 64<<10), most: most, taken: taken, dropped: dropped}
}

func (l *lines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		line, whole, err := l.next()
		line = bytes.TrimPrefix(line, []byte("\ufeff")) // some clients begin with a byte order mark
		switch {
		case !whole:
			l.dropped("too long")
		case len(line) == 0 && err != nil:
			return 0, err
		case len(line) == 0: // an empty line
		case !json.Valid(line):
			l.dropped("no JSON")
		default:
			l.rest = l.taken(line)
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// next reads a line without its end. One that is too long comes as a part, and not whole.
func (l *lines) next() (line []byte, whole bool, err error) {
	whole = true
	for {
		part, err := l.in.ReadSlice('\n')
		if len(line)+len(part) > l.most {
			whole = false
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			for len(line) > 0 && (line[len(line)-1] == '\n' || line[len(line)-1] == '\r') {
				line = line[:len(line)-1]
			}
			return line, whole, err
		}
	}
}
