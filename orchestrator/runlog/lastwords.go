package runlog

import (
	"bufio"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/agent-on-demand/aod/api"
)

const (
	maxWords = 4 << 10   // bytes that are told
	wordsIn  = 512 << 10 // the end of the log in which they are looked for, in bytes
)

// LastWords returns the last lines that the last attempt of a run wrote to stderr, up to 4 KiB
// together, as far as the end of its log has them. They are the program's own: nothing may log
// them. It returns "" for a run that succeeded or has no program of ours.
func LastWords(runDir string, record api.Record) string {
	if record.Outcome == api.Success || record.ExitCode == nil {
		return ""
	}
	file, err := os.Open(pathIn(runDir))
	if err != nil {
		return "" // it wrote nothing, or the run is gone
	}
	defer func() { _ = file.Close() }() // read only
	end, err := endOf(file, wordsIn)
	if err != nil {
		return ""
	}
	var lines []string
	size := 0
	for {
		entry, err := end.next()
		if err != nil {
			return cutFront(strings.Join(lines, "\n"), maxWords)
		}
		if entry.Stream != "stderr" || entry.Attempt != record.Retries+1 {
			continue
		}
		lines = append(lines, entry.Text)
		for size += len(entry.Text) + 1; size > maxWords+1 && len(lines) > 1; lines = lines[1:] {
			size -= len(lines[0]) + 1
		}
	}
}

// endOf returns a reader of the whole lines in the last bytes of a log.
func endOf(file *os.File, most int64) (*reader, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	start := max(info.Size()-most, 0)
	if _, err := file.Seek(start, io.SeekStart); err != nil {
		return nil, err
	}
	buffered := bufio.NewReader(file)
	if start > 0 {
		if _, err := buffered.ReadBytes('\n'); err != nil { // of a line whose start is not there
			return nil, err
		}
	}
	return newReader(buffered), nil
}

// cutFront cuts a text to its last bytes, between runes.
func cutFront(s string, most int) string {
	if len(s) <= most {
		return s
	}
	s = s[len(s)-most:]
	for s != "" && !utf8.RuneStart(s[0]) {
		s = s[1:]
	}
	return s
}
