package web

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agent-on-demand/aod/internal/terminal"
)

// diffBounds are how much of a patch is shown.
type diffBounds struct {
	Bytes int64 // that are read
	Files int
	Lines int // of all files
	Each  int // lines of one file
}

// mostColumns is how many bytes of a line are shown.
const mostColumns = 1000

// fileDiff is what a patch says of one file.
type fileDiff struct {
	Name         string
	Told         []string // what isn't a line: its mode, that it is new
	Rows         []diffRow
	Plus, Minus  int64
	Binary       bool
	Left         int64 // lines that aren't shown
	old, new     int64 // the next lines' numbers
	oldIn, newIn int64 // lines of the hunk that are still to come
}

// diffRow is a line of a file, or the head of a hunk.
type diffRow struct {
	Class    string // add, del, hunk, or "" of a line that stays
	Old, New string // its numbers
	Text     string
}

// Sign is what stands before the line.
func (r diffRow) Sign() string {
	return map[string]string{"add": "+ ", "del": "- ", "": "  "}[r.Class]
}

// readDiff reads a patch in git's format up to bounds, and reports whether that was all of it. Whatever isn't a patch
// has no files.
func readDiff(patch io.Reader, most diffBounds) (files []*fileDiff, whole bool, err error) {
	in := bufio.NewReaderSize(io.LimitReader(patch, most.Bytes+1), 64<<10)
	read, lines := int64(0), 0
	var f *fileDiff
	for {
		line, n, err := nextLine(in)
		if read += n; errors.Is(err, io.EOF) && n == 0 {
			return files, true, nil
		}
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return files, false, err
		case read > most.Bytes:
			return files, false, nil
		}
		if f == nil || !f.inHunk() {
			if name, begins := nameOf(line); begins {
				if len(files) == most.Files {
					return files, false, nil
				}
				f = &fileDiff{Name: name}
				files = append(files, f)
				continue
			}
		}
		if f != nil {
			f.take(line, &lines, most)
		}
	}
}

// nextLine returns a line without its end and no longer than can be shown, and how many bytes it has.
func nextLine(in *bufio.Reader) (line []byte, n int64, err error) {
	for {
		part, err := in.ReadSlice('\n')
		n += int64(len(part))
		if room := mostColumns + utf8.UTFMax - len(line); room > 0 {
			line = append(line, part[:min(room, len(part))]...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSuffix(line, []byte("\n")), n, err
		}
	}
}

// nameOf reads the line with which the part of a file begins: its name stands there twice, with quotes where it has
// other characters.
func nameOf(line []byte) (name string, begins bool) {
	both, begins := bytes.CutPrefix(line, []byte("diff --git "))
	if !begins {
		return "", false
	}
	own := string(both[:len(both)/2])
	if text, err := strconv.Unquote(own); err == nil && strings.HasPrefix(own, `"`) {
		own = text
	}
	return strings.TrimPrefix(own, "a/"), true
}

func (f *fileDiff) inHunk() bool { return f.oldIn > 0 || f.newIn > 0 }

// take reads a line of the file's part.
func (f *fileDiff) take(line []byte, lines *int, most diffBounds) {
	switch {
	case f.inHunk():
		f.line(line, lines, most)
	case bytes.HasPrefix(line, []byte("@@ ")):
		if f.begin(string(line)) {
			f.show(diffRow{Class: "hunk", Text: shownLine(line)}, lines, most)
		}
	case bytes.HasPrefix(line, []byte("GIT binary patch")), bytes.HasPrefix(line, []byte("Binary files ")):
		f.Binary = true
	case bytes.HasPrefix(line, []byte(`\ `)):
		f.show(diffRow{Class: "hunk", Text: shownLine(line[2:])}, lines, most)
	case len(f.Rows) == 0 && !f.Binary && len(f.Told) < 8:
		for _, head := range []string{"new file mode ", "deleted file mode ", "old mode ", "new mode "} {
			if bytes.HasPrefix(line, []byte(head)) {
				f.Told = append(f.Told, shownLine(line))
			}
		}
	}
}

// begin reads the head of a hunk: @@ -1,4 +1,6 @@. A number that it leaves out is 1.
func (f *fileDiff) begin(head string) bool {
	words := strings.Fields(head)
	if len(words) < 3 || !strings.HasPrefix(words[1], "-") || !strings.HasPrefix(words[2], "+") {
		return false
	}
	var known [2]bool
	f.old, f.oldIn, known[0] = rangeOf(words[1][1:])
	f.new, f.newIn, known[1] = rangeOf(words[2][1:])
	if !known[0] || !known[1] {
		f.oldIn, f.newIn = 0, 0
	}
	return known[0] && known[1]
}

func rangeOf(text string) (from, count int64, ok bool) {
	const most = 1 << 32 // lines
	at, many, has := strings.Cut(text, ",")
	from, err := strconv.ParseInt(at, 10, 64)
	count = 1
	if err == nil && has {
		count, err = strconv.ParseInt(many, 10, 64)
	}
	return from, count, err == nil && from >= 0 && count >= 0 && from < most && count < most
}

// line reads a line of a hunk.
func (f *fileDiff) line(line []byte, lines *int, most diffBounds) {
	sign, row := byte(' '), diffRow{}
	if len(line) > 0 {
		sign, row.Text = line[0], shownLine(line[1:])
	}
	switch sign {
	case '+':
		row.Class = "add"
		f.Plus++
	case '-':
		row.Class = "del"
		f.Minus++
	case '\\':
		row.Class = "hunk"
		f.show(row, lines, most)
		return
	}
	if sign != '+' {
		row.Old = strconv.FormatInt(f.old, 10)
		f.old, f.oldIn = f.old+1, f.oldIn-1
	}
	if sign != '-' {
		row.New = strconv.FormatInt(f.new, 10)
		f.new, f.newIn = f.new+1, f.newIn-1
	}
	f.show(row, lines, most)
}

func (f *fileDiff) show(row diffRow, lines *int, most diffBounds) {
	if *lines >= most.Lines || len(f.Rows) >= most.Each {
		if row.Class != "hunk" {
			f.Left++
		}
		return
	}
	*lines++
	f.Rows = append(f.Rows, row)
}

// shownLine is a line in which everything is seen: what would move the reader's eye elsewhere stands as its number.
func shownLine(line []byte) string {
	var text strings.Builder
	for rest := line; len(rest) > 0; {
		if text.Len() > mostColumns {
			return text.String() + " … (the line is longer)"
		}
		r, n := utf8.DecodeRune(rest)
		if r != '\t' && terminal.Obeys(r) {
			fmt.Fprintf(&text, "<U+%04X>", r)
		} else {
			text.WriteRune(r)
		}
		rest = rest[n:]
	}
	return text.String()
}
