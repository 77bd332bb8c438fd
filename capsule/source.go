package capsule

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
)

// maxFileBytes bounds every file that is read whole: far more than a person writes.
const maxFileBytes = 256 << 10

// A source reads files below one directory, never through a link and never anything
// but a regular file.
type source struct {
	root    *os.Root
	instead map[string][]byte // what is read in place of the files of these names
}

func openSource(dir string) (source, error) {
	root, err := os.OpenRoot(dir)
	return source{root: root}, err
}

func (s source) close() { _ = s.root.Close() } // nothing was written

// problem is what is wrong with a file as a file, for a finding.
type problem struct{ message, hint string }

func (p *problem) Error() string { return p.message }

// read returns the content of a file of at most the given number of bytes. The error
// is fs.ErrNotExist or a *problem.
func (s source) read(name string, most int64) ([]byte, error) {
	raw, given := s.instead[name]
	if !given {
		f, err := s.open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if raw, err = io.ReadAll(io.LimitReader(f, most+1)); err != nil {
			return nil, &problem{"it can't be read: " + safefs.Reason(err), ""}
		}
	}
	if int64(len(raw)) > most {
		return nil, &problem{
			fmt.Sprintf("it is larger than %s", quantity.SizeText(most)),
			"keep large data in a file of its own",
		}
	}
	return raw, nil
}

// open opens a regular file for reading. The errors are those of read.
func (s source) open(name string) (*os.File, error) {
	if err := s.check(name); err != nil {
		return nil, err
	}
	f, _, err := safefs.OpenRegular(s.root, name)
	var replaced *safefs.Irregular
	if errors.As(err, &replaced) {
		return nil, &problem{"it was replaced while it was read", "try again"}
	}
	if err != nil {
		return nil, &problem{"it can't be opened: " + safefs.Reason(err), "make it readable"}
	}
	return f, nil
}

// check reports what keeps a name from being a regular file that is reached without a
// link. The errors are those of read.
func (s source) check(name string) error {
	if err := s.checkParents(name); err != nil {
		return err
	}
	info, err := s.lstat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &problem{"it is " + kindOf(info.Mode()) + ", not a regular file", "put the file itself there"}
	}
	return nil
}

func (s source) checkParents(name string) error {
	for i, r := range name {
		if r != '/' {
			continue
		}
		info, err := s.lstat(name[:i])
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return &problem{
				path.Base(name[:i]) + "/ is " + kindOf(info.Mode()) + ", not a directory",
				"put the directory itself there",
			}
		}
	}
	return nil
}

func (s source) lstat(name string) (fs.FileInfo, error) {
	info, err := s.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, &problem{"it can't be read: " + safefs.Reason(err), ""}
	}
	return info, nil
}

// kindOf names what a file is, with its article.
func kindOf(mode fs.FileMode) string {
	if mode&fs.ModeNamedPipe != 0 {
		return "a named pipe"
	}
	return safefs.Describe(mode)
}
