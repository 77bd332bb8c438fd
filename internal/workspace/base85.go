package workspace

import (
	"bufio"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
)

const (
	digits85  = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
	lengths85 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	line85    = len(lengths85) // bytes that a line holds
)

// writeLiteral writes a content as a git patch has a binary one: compressed, in base 85.
func writeLiteral(w *bufio.Writer, content io.Reader, size int64) error {
	_, _ = fmt.Fprintf(w, "literal %d\n", size) // its last flush tells
	lines := &lines85{w: w}
	packed := zlib.NewWriter(lines)
	if _, err := io.Copy(packed, content); err != nil {
		return err
	}
	if err := packed.Close(); err != nil {
		return err
	}
	lines.flush()
	return w.WriteByte('\n')
}

// lines85 writes lines in git's base 85: a letter for the number of bytes, then five digits for
// each four bytes. The errors stay in its writer.
type lines85 struct {
	w    *bufio.Writer
	line [line85]byte
	held int
}

// Write implements io.Writer.
func (l *lines85) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := copy(l.line[l.held:], rest)
		rest = rest[n:]
		if l.held += n; l.held == line85 {
			l.flush()
		}
	}
	return len(p), nil
}

func (l *lines85) flush() {
	if l.held == 0 {
		return
	}
	out := []byte{lengths85[l.held-1]}
	clear(l.line[l.held:])
	for i := 0; i < l.held; i += 4 {
		word := binary.BigEndian.Uint32(l.line[i:])
		var five [5]byte
		for at := 4; at >= 0; at-- {
			five[at] = digits85[word%85]
			word /= 85
		}
		out = append(out, five[:]...)
	}
	_, _ = l.w.Write(append(out, '\n')) // its last flush tells
	l.held = 0
}
