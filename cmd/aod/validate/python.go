package validate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
	"github.com/agent-on-demand/aod/internal/images"
	"github.com/agent-on-demand/aod/internal/safefs"
)

const (
	syntaxTime     = 30 * time.Second
	maxSourceBytes = 1 << 20  // of one file; what is larger is data
	maxSources     = 32 << 20 // of all files
)

// compileAll is a program in Python that compiles sources and runs none of them. It reads
// [[name, source in base64], …] and prints its version and what is wrong.
const compileAll = `
import base64, json, sys, warnings
warnings.simplefilter("ignore")
found = []
for name, source in json.load(sys.stdin):
    try:
        compile(base64.b64decode(source), name, "exec", dont_inherit=True)
    except SyntaxError as e:
        found.append({"file": name, "line": e.lineno or 0, "message": e.msg or "invalid syntax"})
    except (ValueError, RecursionError, MemoryError, OverflowError) as e:
        found.append({"file": name, "line": 0, "message": str(e) or type(e).__name__})
json.dump({"version": sys.version_info[:2], "found": found}, sys.stdout)
`

// compiled is what compileAll prints.
type compiled struct {
	Version [2]int       `json:"version"`
	Found   []uncompiled `json:"found"`
}

// uncompiled is a file that can't be compiled.
type uncompiled struct {
	File    string `json:"file"`
	Line    int    `json:"line"` // 0: none is to blame
	Message string `json:"message"`
}

var errNoPython = errors.New("there is no python3")

// pythonSyntax compiles the Python files of an image with the python3 of this machine, and
// runs nothing of them. The error is errNoPython where there is none, or what kept it from
// its work.
func pythonSyntax(ctx context.Context, c *capsule.Capsule) ([]fault.Finding, error) {
	sources, err := pythonSources(c)
	if err != nil || len(sources) == 0 {
		return nil, err
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		return nil, errNoPython
	}
	given, err := json.Marshal(sources)
	if err != nil {
		return nil, fmt.Errorf("compile Python: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, syntaxTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "-I", "-S", "-c", compileAll)
	cmd.Dir, cmd.Stdin = os.TempDir(), bytes.NewReader(given)
	raw, err := cmd.Output()
	var told compiled
	if err == nil {
		err = json.Unmarshal(raw, &told)
	}
	if err != nil {
		return nil, fmt.Errorf("compile Python: %w", err)
	}
	return told.findings(c), nil
}

// findings are warnings where the image may have a newer Python than this machine, or one of
// its own.
func (c compiled) findings(of *capsule.Capsule) []fault.Finding {
	older := c.Version[0] < images.BasePython[0] || c.Version[0] == images.BasePython[0] &&
		c.Version[1] < images.BasePython[1]
	var findings []fault.Finding
	for _, f := range c.Found {
		finding := fault.Finding{File: f.File, Line: f.Line, Message: f.Message}
		if older || !of.UsesBase() {
			finding.Warning = true
			finding.Hint = fmt.Sprintf("so says Python %d.%d of this machine; that of the image may be another",
				c.Version[0], c.Version[1])
		}
		findings = append(findings, finding)
	}
	return findings
}

// pythonSources lists the names and contents of the Python files that go into the image.
func pythonSources(c *capsule.Capsule) ([][2]any, error) {
	if c.Remote != nil {
		return nil, nil
	}
	context, err := c.Context()
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(c.Dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var sources [][2]any
	left := int64(maxSources)
	for _, name := range context.Files() {
		if path.Ext(name) != ".py" {
			continue
		}
		// what can't be read is left to the build, which says why
		raw, err := safefs.ReadRegular(root, name, maxSourceBytes)
		if left -= int64(len(raw)); left < 0 {
			break
		}
		if err == nil {
			sources = append(sources, [2]any{name, raw})
		}
	}
	return sources, nil
}
