package runtime

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/safefs"
)

const (
	resultName   = "output.json"
	maxDirDepth  = 32
	maxNameBytes = 1024 // of an output file with its directories
	maxSkipped   = 20   // of which the names are kept
)

// ReadResult reads /io/output.json, or the result that the program posted instead. A missing
// result, a special file or one over maxBytes is a finding: it is the program's fault, not
// ours.
func (l Layout) ReadResult(maxBytes int64) ([]byte, *fault.Finding, error) {
	raw, err := readRegular(l.Dir, postedName, maxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		raw, err = readRegular(l.path("io"), resultName, maxBytes)
	}
	if err == nil {
		return raw, nil, nil
	}
	finding := resultFinding(err)
	if finding == nil {
		return nil, nil, fmt.Errorf("read result: %w", err)
	}
	return nil, finding, nil
}

func resultFinding(err error) *fault.Finding {
	f := fault.Finding{File: ioDir + "/" + resultName}
	var special *safefs.Irregular
	var large *tooLarge
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Message = "was not written"
		f.Hint = "the program has to leave its result, a JSON object, in " + f.File
	case errors.Is(err, fs.ErrPermission):
		f.Message = "can't be read: its permissions are closed"
		f.Hint = "write it with mode 0644"
	case errors.As(err, &special):
		f.Message = special.Error()
		f.Hint = "links and special files are never followed; write the JSON object itself"
	case errors.As(err, &large):
		f.Message = large.Error()
		f.Hint = "put large data into a file below " + ioDir + "/output and return its name"
	default:
		return nil
	}
	return &f
}

// Found is an output file in the run's directory.
type Found struct {
	Name      string // relative to /io/output, slash-separated
	SizeBytes int64
}

// Listing lists the files of /io/output.
type Listing struct {
	Files   []Found  // regular files by name
	Skipped []string // links, special files and unfit names, the first few, each with what it is
	Extra   int      // how many more were skipped
}

// LimitError says that a run went over one of its limits.
type LimitError struct {
	Limit   string // the limit's name, as in agent.yaml: "output", "memory", "pids", …
	Message string
	Hint    string
}

func (e *LimitError) Error() string { return e.Message }

// OutputRoot opens /io/output for checks; nothing leads out of it.
func (l Layout) OutputRoot() (*os.Root, error) { return os.OpenRoot(l.output()) }

// WrittenOutput is /io/output on this host while the program may write there. For an engine that
// doesn't see this host's files it is empty until the end.
func (l Layout) WrittenOutput() string { return l.path("io/output") }

// InputRoot opens /io/input for checks.
func (l Layout) InputRoot() (*os.Root, error) { return os.OpenRoot(l.input()) }

// Collect lists /io/output. Call it when the container has ended, or after TakeOutput: nothing
// may change meanwhile. The error is a *LimitError for too much of anything.
func (l Layout) Collect(limits Limits) (Listing, error) {
	if err := checkDirectory(l.output()); err != nil {
		return Listing{}, err
	}
	if err := os.Chmod(l.output(), 0o700); err != nil {
		return Listing{}, fmt.Errorf("collect: %w", err)
	}
	root, err := l.OutputRoot()
	if err != nil {
		return Listing{}, fmt.Errorf("collect: %w", err)
	}
	defer func() { _ = root.Close() }() // read only
	c := collector{root: root, limits: limits}
	if err := c.dir(".", 0); err != nil {
		return Listing{}, fmt.Errorf("collect: %w", err)
	}
	sort.Slice(c.found.Files, func(i, j int) bool { return c.found.Files[i].Name < c.found.Files[j].Name })
	return c.found, nil
}

// checkDirectory guards against a program that replaced /io/output by a link.
func checkDirectory(output string) error {
	info, err := os.Lstat(output)
	if errors.Is(err, fs.ErrNotExist) {
		return &LimitError{Limit: "output", Message: "the directory /io/output was removed by the program"}
	}
	if err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	if !info.IsDir() {
		return &LimitError{Limit: "output", Message: "/io/output is " + safefs.Describe(info.Mode()) +
			", not a directory"}
	}
	return nil
}

type collector struct {
	root    *os.Root
	limits  Limits
	found   Listing
	entries int
	bytes   int64
}

func (c *collector) dir(name string, depth int) error {
	if depth > maxDirDepth {
		return &LimitError{Limit: "output", Message: fmt.Sprintf("/io/output is nested more than %d directories deep",
			maxDirDepth)}
	}
	// Without these permissions we could not read the directory's files.
	if err := c.root.Chmod(name, 0o700); err != nil {
		return err
	}
	return safefs.EachEntry(c.root, name, func(entry fs.DirEntry) error {
		return c.entry(path.Join(name, entry.Name()), entry, depth)
	})
}

func (c *collector) entry(name string, entry fs.DirEntry, depth int) error {
	c.entries++
	if c.entries > c.limits.OutputFiles {
		return &LimitError{
			Limit:   "output",
			Message: fmt.Sprintf("/io/output holds more than %d files and directories", c.limits.OutputFiles),
			Hint:    "pack many small files into one archive",
		}
	}
	if problem := nameProblem(name); problem != "" {
		c.skip(name, problem)
		return nil
	}
	switch {
	case entry.IsDir():
		return c.dir(name, depth+1)
	case entry.Type().IsRegular():
		return c.file(name, entry)
	}
	c.skip(name, "is "+safefs.Describe(entry.Type()))
	return nil
}

// nameProblem says why a file's name can't be used: it is too long, JSON can't carry it, or it
// could control a terminal; "" if it can.
func nameProblem(name string) string {
	switch {
	case len(name) > maxNameBytes:
		return fmt.Sprintf("has a name of more than %d bytes", maxNameBytes)
	case !utf8.ValidString(name):
		return "has a name that is not UTF-8"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "has a control character in its name"
	}
	return ""
}

func (c *collector) skip(name, why string) {
	if len(c.found.Skipped) == maxSkipped {
		c.found.Extra++
		return
	}
	const shown = 200
	if len(name) > shown {
		name = name[:shown] + "…"
	}
	c.found.Skipped = append(c.found.Skipped, fmt.Sprintf("%q %s", name, why))
}

func (c *collector) file(name string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	c.bytes += info.Size()
	if c.bytes > c.limits.OutputBytes {
		return &LimitError{
			Limit:   "output",
			Message: fmt.Sprintf("the output files have more than %d bytes together", c.limits.OutputBytes),
			Hint:    "raise limits.output in agent.yaml if that is meant",
		}
	}
	c.found.Files = append(c.found.Files, Found{Name: name, SizeBytes: info.Size()})
	return nil
}
