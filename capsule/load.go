package capsule

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/safefs"
)

// maxFindings bounds how many problems of one directory are told.
const maxFindings = 200

// Load reads the unit in a directory. The error is a *fault.Error: NotFound where
// there is no directory, else Capsule, with every problem of the directory among its
// Findings (at most 200, with one more that says so), each with its place and its mend.
func (r *Reader) Load(dir string) (*Capsule, error) {
	abs, err := existingDir(dir)
	if err != nil {
		return nil, err
	}
	src, err := openSource(abs)
	if err != nil {
		return nil, fault.Wrap(fault.Capsule, err, "%s can't be read: %s", dir, safefs.Reason(err)).WithHint("make the directory readable")
	}
	defer src.close()

	l := &loader{source: src, kinds: r.kinds}
	c := &Capsule{Dir: abs}
	kind := l.readAgent(c)
	kind.Read(&Directory{l}, c)
	if errs := fault.Errors(l.findings); len(errs) > 0 {
		return nil, invalid(dir, l.findings, len(errs))
	}
	c.Warnings = l.findings
	return c, nil
}

// existingDir returns the absolute path of a directory, or says what is there instead.
func existingDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, "the working directory can't be found")
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fault.New(fault.NotFound, "there is no directory %s", dir).WithHint("create a capsule with: aod init NAME")
	case err != nil:
		return "", fault.Wrap(fault.Capsule, err, "%s can't be read: %s", dir, safefs.Reason(err)).WithHint("make the directory readable")
	case !info.IsDir():
		return "", fault.New(fault.Capsule, "%s is not a directory", dir).WithHint("name the directory that holds the capsule's Dockerfile")
	}
	return abs, nil
}

func invalid(dir string, findings []fault.Finding, errs int) *fault.Error {
	problems := "1 problem"
	if errs > 1 {
		problems = fmt.Sprintf("%d problems", errs)
	}
	return fault.New(fault.Capsule, "the capsule in %s has %s", dir, problems).
		WithHint("mend what is listed, then check it with: aod validate %s", dir).
		WithFindings(bounded(findings))
}

func bounded(findings []fault.Finding) []fault.Finding {
	if len(findings) <= maxFindings {
		return findings
	}
	more := fault.Finding{Message: fmt.Sprintf("and %d more problems", len(findings)-maxFindings), Hint: "mend the first ones and look again"}
	return append(findings[:maxFindings:maxFindings], more)
}

// loader gathers the problems of one directory.
type loader struct {
	source   source
	kinds    map[string]Kind
	findings []fault.Finding
}

func (l *loader) readContract() *contract.Contract {
	raw, ok := l.readFile("schema.json", `add one: {"input": {"type": "object"}, "output": {"type": "object"}} takes and gives anything`)
	if !ok {
		return nil
	}
	c, findings := contract.Parse(raw)
	l.findings = append(l.findings, findings...)
	return c
}

func (l *loader) report(file string, line int, message, hint string) {
	l.findings = append(l.findings, fault.Finding{File: file, Line: line, Message: message, Hint: hint})
}

// readFile reads a file that has to be there; what is wrong becomes a finding.
func (l *loader) readFile(name, missing string) (raw []byte, ok bool) {
	raw, err := l.source.read(name, maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		l.report(name, 0, "it is missing", missing)
		return nil, false
	}
	return raw, l.readable(name, err)
}

// readOptional reads a file that may be missing; what else is wrong becomes a finding.
func (l *loader) readOptional(name string) (raw []byte, ok bool) {
	raw, err := l.source.read(name, maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	return raw, l.readable(name, err)
}

func (l *loader) readable(name string, err error) bool {
	var p *problem
	if errors.As(err, &p) {
		l.report(name, 0, p.message, p.hint)
	}
	return err == nil
}
