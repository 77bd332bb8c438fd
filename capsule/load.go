package capsule

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/internal/safefs"
)

// maxFindings bounds how many problems of one directory are told.
const maxFindings = 200

// Load reads the unit in a directory. The error is a *fault.Error: NotFound where
// there is no directory, else Capsule, with every problem of the directory among its
// Findings (at most 200, with one more that says so), each with its place and its mend.
func Load(dir string) (*Capsule, error) { return load(dir, nil) }

// LoadFlow is Load of a flow as if the file with its graph had another text.
func LoadFlow(dir string, text []byte) (*Capsule, error) {
	return load(dir, map[string][]byte{flow.FileName: text})
}

func load(dir string, instead map[string][]byte) (*Capsule, error) {
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
	src.instead = instead

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

// NameOf returns the name that agent.yaml gives a directory, or "".
func NameOf(dir string) string {
	abs, err := existingDir(dir)
	if err != nil {
		return ""
	}
	src, err := openSource(abs)
	if err != nil {
		return ""
	}
	defer src.close()
	d, c := &Directory{source: src}, &Capsule{Dir: abs}
	d.readAgent(c)
	return c.Name
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
		WithHint("fix what is listed, then check it with: aod validate %s", dir).
		WithFindings(bounded(findings))
}

func bounded(findings []fault.Finding) []fault.Finding {
	if len(findings) <= maxFindings {
		return findings
	}
	more := fault.Finding{
		Message: fmt.Sprintf("and %d more problems", len(findings)-maxFindings),
		Hint:    "fix the first ones and look again",
	}
	return append(findings[:maxFindings:maxFindings], more)
}
