package workspace

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // git names contents by it; nothing is trusted because of it
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/internal/safefs"
)

const (
	maxTextBytes = 1 << 20 // of a file that is compared line by line
	sniffed      = 8000    // bytes in which git looks for a NUL
	contextLines = 3
)

var noBlob = strings.Repeat("0", 40)

// writePatch writes the changes below dest as a patch in git's format.
func writePatch(base, dest string, changes []api.Change) (err error) {
	file, err := os.OpenFile(filepath.Join(dest, PatchName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	p := patch{out: bufio.NewWriterSize(file, 64<<10), base: base, kept: filepath.Join(dest, ContentsName)}
	for _, change := range changes {
		if err = p.change(change); err != nil {
			break
		}
	}
	return errors.Join(err, p.out.Flush(), file.Close())
}

// PatchOf returns the part of a patch of Compare's that is of one file; nil: it has none.
func PatchOf(patch *os.File, name string) (*io.SectionReader, error) {
	header := fmt.Sprintf("diff --git %s %s\n", quoteName("a/"+name), quoteName("b/"+name))
	lines := bufio.NewReaderSize(patch, 64<<10)
	start, at := int64(-1), int64(0)
	for begins := true; ; {
		line, err := lines.ReadSlice('\n')
		if begins && bytes.HasPrefix(line, []byte("diff --git ")) { // other lines begin with other characters
			if own := string(line) == header; own && start < 0 {
				start = at
			} else if !own && start >= 0 {
				break
			}
		}
		at += int64(len(line))
		if begins = err == nil; errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
	if start < 0 {
		return nil, nil
	}
	return io.NewSectionReader(patch, start, at-start), nil
}

type patch struct {
	out        *bufio.Writer
	base, kept string // directories of the old and the new contents
}

// side is what a file was or has become; nil: it isn't there.
type side struct {
	mode   string
	dir    string
	name   string
	size   int64
	text   []byte // where text is true
	blob   string // git's name of the content
	isText bool
}

// change writes what happened to one file. One that has become a link is deleted and added, and
// so is a link that has become a file.
func (p *patch) change(c api.Change) error {
	var old, now *side
	var err error
	if c.Op != api.OpAdd {
		if old, err = newSide(p.base, c.Path, cmp.Or(c.ModeWas, c.Mode)); err != nil {
			return err
		}
	}
	if c.Op != api.OpDelete {
		if now, err = newSide(p.kept, c.Path, c.Mode); err != nil {
			return err
		}
	}
	if old != nil && now != nil && (old.mode == modeLink) != (now.mode == modeLink) {
		return errors.Join(p.section(c.Path, old, nil), p.section(c.Path, nil, now))
	}
	return p.section(c.Path, old, now)
}

func (p *patch) section(name string, old, now *side) error {
	from, to := quoteName("a/"+name), quoteName("b/"+name)
	p.printf("diff --git %s %s\n", from, to)
	switch {
	case old == nil:
		p.printf("new file mode %s\nindex %s..%s\n", now.mode, noBlob, now.blob)
		from = "/dev/null"
	case now == nil:
		p.printf("deleted file mode %s\nindex %s..%s\n", old.mode, old.blob, noBlob)
		to = "/dev/null"
	case old.mode != now.mode:
		p.printf("old mode %s\nnew mode %s\n", old.mode, now.mode)
		if old.blob != now.blob {
			p.printf("index %s..%s\n", old.blob, now.blob)
		}
	default:
		p.printf("index %s..%s %s\n", old.blob, now.blob, now.mode)
	}
	if !old.comparable() || !now.comparable() {
		return p.binary(old, now)
	}
	p.hunks(from, to, old.lines(), now.lines())
	return nil
}

// printf writes to the patch, whose last flush tells what went wrong.
func (p *patch) printf(format string, args ...any) { _, _ = fmt.Fprintf(p.out, format, args...) }

// TextPatch tells in git's format how a text became another one; "": they are the same.
func TextPatch(name, old, now string) string {
	if old == now {
		return ""
	}
	var text strings.Builder
	p := &patch{out: bufio.NewWriter(&text)}
	from, to := quoteName("a/"+name), quoteName("b/"+name)
	p.printf("diff --git %s %s\n", from, to)
	p.hunks(from, to, old, now)
	_ = p.out.Flush() // into memory
	return text.String()
}

// hunks writes how a text became another one.
func (p *patch) hunks(from, to, old, now string) {
	if old == now {
		return
	}
	diff, err := udiff.ToUnified(labelled(from), labelled(to), old, udiff.Lines(old, now), contextLines)
	if err != nil { // the edits are its own
		panic(err)
	}
	p.printf("%s", diff)
}

// labelled returns a name for the lines with --- and +++, where a space needs a tab behind it.
func labelled(name string) string {
	if strings.Contains(name, " ") {
		return name + "\t"
	}
	return name
}

// binary writes both contents, so that the patch can be reverted as well.
func (p *patch) binary(old, now *side) error {
	if old != nil && now != nil && old.blob == now.blob {
		return nil
	}
	p.printf("GIT binary patch\n")
	for _, s := range []*side{now, old} {
		if err := p.literal(s); err != nil {
			return err
		}
	}
	return nil
}

func (p *patch) literal(s *side) error {
	if s == nil {
		return writeLiteral(p.out, strings.NewReader(""), 0)
	}
	content, err := s.open()
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }() // read only
	return writeLiteral(p.out, content, s.size)
}

// newSide reads a file as far as a patch needs it.
func newSide(dir, name, mode string) (*side, error) {
	s := &side{mode: mode, dir: dir, name: name}
	content, err := s.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = content.Close() }() // read only
	if s.size, err = sizeOf(content); err != nil {
		return nil, err
	}
	sum := sha1.New()                              //nolint:gosec // git's name of the content
	_, _ = fmt.Fprintf(sum, "blob %d\x00", s.size) // never fails
	if s.size <= maxTextBytes {
		if s.text, err = io.ReadAll(content); err != nil {
			return nil, err
		}
		s.isText = bytes.IndexByte(s.text[:min(len(s.text), sniffed)], 0) < 0
		_, _ = sum.Write(s.text) // never fails
	} else if _, err = io.Copy(sum, content); err != nil {
		return nil, err
	}
	s.blob = hex.EncodeToString(sum.Sum(nil))
	return s, nil
}

// comparable reports whether lines can be compared with it.
func (s *side) comparable() bool { return s == nil || s.isText }

func (s *side) lines() string {
	if s == nil {
		return ""
	}
	return string(s.text)
}

// open opens the content: of a link in the base its target.
func (s *side) open() (io.ReadCloser, error) { return openBelow(s.dir, s.name) }

// openBelow opens the content of a file or a link below a directory of ours.
func openBelow(dir, name string) (io.ReadCloser, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // holds no data
	if target, err := root.Readlink(name); err == nil {
		return link{strings.NewReader(target)}, nil
	}
	f, _, err := safefs.OpenRegular(root, name)
	return f, err
}

// link is the content of a link.
type link struct{ *strings.Reader }

// Close implements io.Closer.
func (link) Close() error { return nil }

func sizeOf(content io.Reader) (int64, error) {
	switch c := content.(type) {
	case link:
		return c.Size(), nil
	case *os.File:
		info, err := c.Stat()
		if err != nil {
			return 0, err
		}
		return info.Size(), nil
	}
	return 0, errors.New("neither a file nor a link")
}

// escapes are the characters that git writes with a letter in quoted names.
var escapes = map[byte]byte{
	'\a': 'a', '\b': 'b', '\t': 't', '\n': 'n', '\v': 'v', '\f': 'f', '\r': 'r', '"': '"',
	'\\': '\\',
}

// quoteName returns a name as git writes it in a patch: in quotes if a character in it needs
// that.
func quoteName(name string) string {
	var b strings.Builder
	quoted := false
	for i := range len(name) {
		c := name[i]
		letter, escaped := escapes[c]
		switch {
		case escaped:
			b.WriteByte('\\')
			b.WriteByte(letter)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
			continue
		}
		quoted = true
	}
	if quoted {
		return `"` + b.String() + `"`
	}
	return name
}

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
