package runlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/agent-on-demand/aod/internal/safefs"
)

// Each line says its number, so that any of them is found by a few looks into the file. Those of a log that an
// older version began don't: they are counted.

// linesIn returns how many lines a log has that may not exist.
func linesIn(path string) (int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, safefs.IgnoreMissing(err)
	}
	defer func() { _ = file.Close() }() // read only
	return countLines(file)
}

// countLines returns the number of the last whole line of a log; 0: it has none.
func countLines(file *os.File) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	end := make([]byte, min(info.Size(), 2*maxLine)) // a line, and what may be there of the next one
	if _, err := file.ReadAt(end, info.Size()-int64(len(end))); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	whole := bytes.LastIndexByte(end, '\n')
	if whole < 0 {
		return 0, nil
	}
	number, err := numberOf(end[bytes.LastIndexByte(end[:whole], '\n')+1 : whole])
	if number > 0 || err != nil {
		return number, err
	}
	lines := newReader(io.NewSectionReader(file, 0, info.Size()))
	for {
		if _, err := lines.next(); err != nil {
			return lines.line, ignoreEnd(err)
		}
	}
}

// nearby is how many bytes of a log are read line by line to find one.
const nearby = 64 << 10

// startOf returns an offset at which a line starts, at or not far before the one of a number.
func startOf(file *os.File, number int64) (int64, error) {
	info, err := file.Stat()
	if err != nil || number <= 1 {
		return 0, err
	}
	if first, _, err := lineFrom(file, 0, info.Size()); first == 0 || err != nil {
		return 0, err
	}
	low, high := int64(0), info.Size()
	for high-low > nearby {
		middle := low + (high-low)/2
		found, start, err := lineFrom(file, middle, info.Size())
		switch {
		case err != nil:
			return 0, err
		case found == 0 || found > number:
			high = middle
		default:
			low = start
		}
	}
	return low, nil
}

// lineFrom returns the number and the start of the first whole line that begins behind an offset, or at 0; number
// 0: there is none, or it has none.
func lineFrom(file *os.File, offset, size int64) (number, start int64, err error) {
	r := bufio.NewReader(io.NewSectionReader(file, offset, min(size-offset, 2*maxLine)))
	var rest, line []byte
	if offset > 0 {
		rest, err = r.ReadBytes('\n')
	}
	if err == nil {
		line, err = r.ReadBytes('\n')
	}
	if err != nil {
		return 0, 0, ignoreEnd(err)
	}
	number, err = numberOf(line)
	return number, offset + int64(len(rest)), err
}

func numberOf(line []byte) (int64, error) {
	var entry struct {
		Line int64 `json:"line"`
	}
	if json.Unmarshal(line, &entry) != nil || entry.Line < 0 {
		return 0, errDamaged
	}
	return entry.Line, nil
}

func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
