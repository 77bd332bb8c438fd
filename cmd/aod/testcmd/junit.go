package testcmd

import (
	"encoding/xml"
	"fmt"
	"os"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

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
	Out     string        `xml:"system-out,omitempty"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// writeJUnit writes how variants of a unit went.
func writeJUnit(path string, all []*testResults) error {
	suite := junitSuite{Name: all[0].Unit}
	for _, r := range all {
		suite.Tests, suite.Failures = suite.Tests+len(r.Cases), suite.Failures+r.Failed
		class := r.Unit
		if len(all) > 1 {
			class += " " + r.Variant
		}
		for _, c := range r.Cases {
			suite.Cases = append(suite.Cases, c.junit(class))
		}
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

func (c caseResult) junit(class string) junitCase {
	told := junitCase{Class: class, Name: c.Name, Seconds: fmt.Sprintf("%.3f", c.MS/1000)}
	message := ""
	if len(c.Differences) > 0 {
		message = c.Differences[0]
	}
	if c.Repeat != nil {
		told.Out, message = c.Repeat.rate(), c.Repeat.rate()
	}
	if !c.Passed {
		told.Failure = &junitFailure{message, ui.Printable(strings.Join(c.Differences, "\n"))}
	}
	return told
}
