package agent

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// readLines reads an output with a JSON document a line. Lines that are none are counted and
// left out: many programs print notes between them.
func readLines(of Result, r io.Reader, limit int64) (Output, error) {
	bounded := &io.LimitedReader{R: r, N: MaxOutput + 1}
	lines := bufio.NewReaderSize(bounded, 64<<10)
	found := finds{of: of}
	for n := 0; ; n++ {
		line, ok, err := nextLine(lines)
		if bounded.N == 0 {
			return Output{}, tooMuch(MaxOutput)
		}
		if n == maxLines {
			return Output{}, wrongOutput("large results go to files in /io/output", "its output has more than %d lines",
				maxLines)
		}
		found.noteLine(line, ok)
		if errors.Is(err, io.EOF) {
			return found.output(limit)
		}
		if err != nil {
			return Output{}, err
		}
	}
}

// nextLine reads a line of at most maxLine bytes. ok is false for a longer one, which is read
// over. The error comes with the last line.
func nextLine(r *bufio.Reader) (line []byte, ok bool, err error) {
	ok = true
	for {
		piece, err := r.ReadSlice('\n')
		if len(line)+len(piece) > maxLine {
			line, ok = nil, false
		}
		if ok {
			line = append(line, piece...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, ok, err
		}
	}
}

func (f *finds) noteLine(line []byte, ok bool) {
	line = bytes.TrimSpace(line)
	if ok && len(line) == 0 {
		return
	}
	document, err := any(nil), error(nil)
	if ok {
		document, err = decode(line)
	}
	if _, is := document.(map[string]any); !is || err != nil {
		f.skipped++
		return
	}
	f.note(document)
}
