package capsule

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/wire/strictyaml"
)

// maxFindings bounds how many problems of one directory are told.
const maxFindings = 200

// Load reads the unit in a directory. The error is a *fault.Error: NotFound where
// there is no directory, else Capsule, with every problem of the directory among its
// Findings (at most 200, with one more that says so), each with its place and its mend.
func Load(dir string) (*Capsule, error) {
	abs, err := existingDir(dir)
	if err != nil {
		return nil, err
	}
	src, err := openSource(abs)
	if err != nil {
		return nil, fault.Wrap(fault.Capsule, err, "%s can't be read: %s", dir, safefs.Reason(err)).
			WithHint("make the directory readable")
	}
	defer src.close()

	d := &Directory{source: src}
	c := &Capsule{Dir: abs}
	kind := d.readAgent(c)
	kind.Read(d, c)
	if errs := fault.Errors(d.findings); len(errs) > 0 {
		return nil, invalid(dir, d.findings, len(errs))
	}
	c.Warnings = d.findings
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
		return "", fault.New(fault.NotFound, "there is no directory %s", dir).
			WithHint("create a capsule with: aod init NAME")
	case err != nil:
		return "", fault.Wrap(fault.Capsule, err, "%s can't be read: %s", dir, safefs.Reason(err)).
			WithHint("make the directory readable")
	case !info.IsDir():
		return "", fault.New(fault.Capsule, "%s is not a directory", dir).
			WithHint("name the directory that holds the capsule's Dockerfile")
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
	more := fault.Finding{
		Message: fmt.Sprintf("and %d more problems", len(findings)-maxFindings),
		Hint:    "mend the first ones and look again",
	}
	return append(findings[:maxFindings:maxFindings], more)
}

// Directory is a unit's directory that is being read. It gathers what is wrong there.
type Directory struct {
	source   source
	yaml     *strictyaml.Document // agent.yaml; nil: it can't be read
	findings []fault.Finding
}

// Report adds a problem: the unit can't be run until it is mended, unless it is a warning.
func (d *Directory) Report(finding fault.Finding) { d.findings = append(d.findings, finding) }

// Contract reads schema.json. It returns nil where that isn't in order, which is reported.
func (d *Directory) Contract() *contract.Contract {
	raw, ok := d.ReadFile("schema.json",
		`add one: {"input": {"type": "object"}, "output": {"type": "object"}} takes and gives anything`)
	if !ok {
		return nil
	}
	c, findings := contract.Parse(raw)
	d.findings = append(d.findings, findings...)
	return c
}

func (d *Directory) report(file string, line int, message, hint string) {
	d.findings = append(d.findings, fault.Finding{File: file, Line: line, Message: message, Hint: hint})
}

// ReadFile reads a file that has to be there, of at most 256 KiB. What is wrong is reported,
// with the hint where the file is missing.
func (d *Directory) ReadFile(name, missing string) (raw []byte, ok bool) {
	raw, err := d.source.read(name, maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		d.report(name, 0, "it is missing", missing)
		return nil, false
	}
	return raw, d.readable(name, err)
}

// has reports whether there is anything under a name.
func (d *Directory) has(name string) bool {
	return !errors.Is(d.source.check(name), fs.ErrNotExist)
}

// readOptional reads a file that may be missing; what else is wrong becomes a finding.
func (d *Directory) readOptional(name string) (raw []byte, ok bool) {
	raw, err := d.source.read(name, maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	return raw, d.readable(name, err)
}

func (d *Directory) readable(name string, err error) bool {
	var p *problem
	if errors.As(err, &p) {
		d.report(name, 0, p.message, p.hint)
	}
	return err == nil
}
