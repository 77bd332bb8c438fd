package safefs

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
)

// OpenLines opens a file of lines, to be read from its start and appended to, and makes it for its owner alone where
// there is none. An incomplete last line, which a process that died has left, is cut off.
func OpenLines(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	end, err := lastLine(file)
	if err == nil {
		err = file.Truncate(end)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// EachLine calls do with each whole line of a file, with its end, until do returns false or an error. At most so many
// bytes are read. A last line that isn't whole is left out: it is being written, or its process died.
func EachLine(path string, most int64, do func(raw []byte) (more bool, err error)) error {
	file, _, err := OpenNamed(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // read only
	lines := bufio.NewReader(io.LimitReader(file, most))
	for {
		raw, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if more, err := do(raw); !more || err != nil {
			return err
		}
	}
}

// lastLine returns where the last complete line of a file ends.
func lastLine(file *os.File) (end int64, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	block := make([]byte, 64<<10)
	for from := info.Size(); from > 0; {
		n := min(from, int64(len(block)))
		from -= n
		if _, err := file.ReadAt(block[:n], from); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if at := bytes.LastIndexByte(block[:n], '\n'); at >= 0 {
			return from + int64(at) + 1, nil
		}
	}
	return 0, nil
}
