package capsules

import (
	"encoding/xml"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/cli"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// testResults are how the test cases of a unit went.
type testResults struct {
	Unit   string       `json:"unit"`
	Passed int          `json:"passed"`
	Failed int          `json:"failed"`
	Cases  []caseResult `json:"cases"`
}

type caseResult struct {
	Name        string   `json:"name"`
	Passed      bool     `json:"passed"`
	MS          float64  `json:"ms"`
	Differences []string `json:"differences,omitempty"` // from what was expected
}

func (r *testResults) add(name string, differences []string, took time.Duration) {
	if len(differences) == 0 {
		r.Passed++
	} else {
		r.Failed++
	}
	r.Cases = append(r.Cases, caseResult{
		Name: name, Passed: len(differences) == 0, MS: float64(took.Microseconds()) / 1000, Differences: differences,
	})
}

// tell prints the sum, and writes the file of --junit. The exit code says whether a case failed.
func (r *testResults) tell(env *cli.Env, flags testFlags) error {
	if flags.junit != "" {
		if err := r.writeJUnit(flags.junit); err != nil {
			return err
		}
	}
	return cli.Judge(env, r, r.Failed > 0, flags.json, func() {
		env.Out.Line("%d passed, %d failed", r.Passed, r.Failed)
	})
}

// The form of JUnit's reports that CI servers read.
type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Seconds string        `xml:"time,attr"`
	Failure *junitFailure `xml:"failure"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

func (r *testResults) writeJUnit(path string) error {
	suite := junitSuite{Name: r.Unit, Tests: len(r.Cases), Failures: r.Failed}
	for _, c := range r.Cases {
		told := junitCase{Class: r.Unit, Name: c.Name, Seconds: fmt.Sprintf("%.3f", c.MS/1000)}
		if !c.Passed {
			told.Failure = &junitFailure{c.Differences[0], ui.Printable(strings.Join(c.Differences, "\n"))}
		}
		suite.Cases = append(suite.Cases, told)
	}
	raw, err := xml.MarshalIndent(suite, "", "  ")
	if err == nil {
		err = os.WriteFile(path, append([]byte(xml.Header), append(raw, '\n')...), 0o644)
	}
	if err != nil {
		return fault.Wrap(fault.Input, err, "--junit %q can't be written", path).
			WithHint("name a file in a directory that is there and that you may write to")
	}
	return nil
}
