package capsule

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/flow"
	"github.com/agent-on-demand/aod/internal/safefs"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
	"github.com/agent-on-demand/aod/schemas"
)

const (
	testsDir     = "tests"
	maxCases     = 1000
	maxCaseBytes = 4 << 20 // twice the usual payload limit, for input and output, and room
)

// Case is one file of tests/: a run of the capsule and what has to come of it.
type Case struct {
	Name        string // the file's name without .json
	File        string // relative to the capsule's directory
	Description string
	Input       json.RawMessage   // a JSON object; "{}" where the case gives none
	Files       map[string]string // field of the input -> absolute path of an existing file
	Timeout     time.Duration     // zero: the capsule's own limit
	Models      json.RawMessage   // the answers of models, a list; nil: none are given
	Cassette    string            // absolute path of a file with recorded answers; "" is none
	Rehearsal   *flow.Rehearsal   // of a flow: what takes the place of units and people; nil: nothing
	Expect      Expect
}

// Expect is what must hold of a run. What is zero isn't asked for; a case without
// Outcome, Error and ExitCode asks for success.
type Expect struct {
	Output   json.RawMessage       `json:"output"` // nil: anything
	Subset   bool                  `json:"-"`      // Output may be a part of the result
	Files    map[string]ExpectFile `json:"files"`  // by field of the output
	Error    *ExpectError          `json:"error"`
	ExitCode *int                  `json:"exit_code"`
	Outcome  string                `json:"outcome"`
	// expressions over input and output that must be true
	That  []string     `json:"that"`
	Grade *ExpectGrade `json:"grade"` // nil: nobody grades the output
	// of a flow: its nodes in the order in which it goes through them; nil: any
	Path []string `json:"path"`
}

// ExpectFile is what must be true of an output file.
type ExpectFile struct {
	SHA256   string `json:"sha256"` // lower-case hex
	MinBytes int64  `json:"min_bytes"`
	SameAs   string `json:"same_as"` // absolute path of an existing file with the same bytes
}

// ExpectGrade is the unit that says how good an output is, and how good it has to be.
type ExpectGrade struct {
	Unit   string          `json:"unit"`
	With   any             `json:"with"`   // its input, with expressions; nil: {"input": …, "output": …}
	Min    *float64        `json:"min"`    // the least score, from 0 to 1; nil: 1
	Models json.RawMessage `json:"models"` // what models answer it; nil: nothing is given
}

// ExpectError is the error with which the capsule has to fail.
type ExpectError struct {
	Type    string `json:"type"`    // the exception's
	Message string `json:"message"` // a part of the error's message
}

var caseShape = sync.OnceValue(func() shape { return mustShape(parseSchema(schemas.TestCase()), false) })

// Cases reads tests/*.json, sorted by name; none isn't an error. The error is a Capsule
// fault with every problem of every case among its Findings. At most 1,000 cases of
// 4 MiB each are read.
func (c *Capsule) Cases() ([]Case, error) {
	src, err := openSource(c.Dir)
	if err != nil {
		return nil, fault.Wrap(fault.Capsule, err, "%s can't be read: %s", c.Dir, safefs.Reason(err)).
			WithHint("make the directory readable")
	}
	defer src.close()
	names, err := caseFiles(src)
	if err != nil {
		return nil, err
	}
	r := caseReader{source: src, dir: c.Dir}
	cases := make([]Case, 0, len(names))
	for _, name := range names {
		cases = append(cases, r.read(path.Join(testsDir, name)))
	}
	if len(r.findings) > 0 {
		return nil, fault.New(fault.Capsule, "the test cases of %s have problems", c.Name).
			WithHint("fix what is listed").WithFindings(bounded(r.findings))
	}
	return cases, nil
}

// caseFiles lists the cases by file name.
func caseFiles(src source) ([]string, error) {
	info, err := src.lstat(testsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil || !info.IsDir() {
		return nil, badTests("it is not a directory", "put the test cases into a directory of that name")
	}
	children, err := fs.ReadDir(src.root.FS(), testsDir)
	if err != nil {
		return nil, badTests("it can't be read: "+safefs.Reason(err), "make it readable")
	}
	var names []string
	for _, child := range children {
		if strings.HasSuffix(child.Name(), ".json") && !child.IsDir() {
			names = append(names, child.Name())
		}
	}
	if len(names) > maxCases {
		return nil, badTests(fmt.Sprintf("it holds more than %d cases", maxCases),
			"keep data files in a directory below it")
	}
	return names, nil
}

func badTests(message, hint string) *fault.Error {
	f := fault.Finding{File: testsDir, Message: message, Hint: hint}
	return fault.New(fault.Capsule, "%s: %s", testsDir, message).WithHint("%s", hint).WithFindings([]fault.Finding{f})
}

// caseReader reads cases and gathers what is wrong with them.
type caseReader struct {
	source   source
	dir      string
	findings []fault.Finding
}

// caseJSON is a case as it stands in its file.
type caseJSON struct {
	Description string            `json:"description"`
	Input       json.RawMessage   `json:"input"`
	Files       map[string]string `json:"files"`
	Timeout     any               `json:"timeout"`
	Models      json.RawMessage   `json:"models"`
	Expect      expectJSON        `json:"expect"`
	rehearsalJSON
}

type expectJSON struct {
	Expect
	Match string `json:"match"`
}

func (r *caseReader) read(file string) Case {
	raw, err := r.source.read(file, maxCaseBytes)
	if err != nil {
		r.report(file, "", err.Error(), "")
		return Case{}
	}
	parsed, findings := parseCase(raw)
	for i := range findings {
		findings[i].File = file
	}
	r.findings = append(r.findings, findings...)
	return r.resolve(file, parsed)
}

func (r *caseReader) report(file, pointer, message, hint string) {
	r.findings = append(r.findings, fault.Finding{File: file, Pointer: pointer, Message: message, Hint: hint})
}

// parseCase checks the bytes of a case and reads them, as far as they can be read.
func parseCase(raw []byte) (caseJSON, []fault.Finding) {
	var parsed caseJSON
	if _, err := contract.Decode(raw, maxCaseBytes); err != nil {
		public := fault.Public(err)
		if len(public.Findings) > 0 {
			return parsed, slices.Clone(public.Findings)
		}
		return parsed, []fault.Finding{{Message: public.Msg, Hint: public.Hint}}
	}
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		return parsed, []fault.Finding{{Message: "it isn't a JSON object", Hint: `write {"input": {…}, "expect": {…}}`}}
	}
	_ = json.Unmarshal(raw, &parsed) // a wrong type is the schema's to report
	return parsed, caseShape().check(object, checkCase(object, parsed))
}

// checkCase finds what the schema can't say, or says badly.
func checkCase(object map[string]any, parsed caseJSON) []fault.Finding {
	var u units
	if _, err := caseTimeout(parsed); err != nil {
		u.report("/timeout", err.Error(), durationHint)
	}
	expect, _ := object["expect"].(map[string]any)
	_, output := expect["output"]
	_, failure := expect["error"]
	if output && failure {
		u.report("/expect", "output and error exclude each other", "keep one: a run either gives a result or fails")
	}
	for i, condition := range parsed.Expect.That {
		_, findings := parseGrading(Condition(condition), fmt.Sprintf("/expect/that/%d", i))
		u.findings = append(u.findings, findings...)
	}
	if g := parsed.Expect.Grade; g != nil {
		_, findings := parseGrading(g.With, "/expect/grade/with")
		u.findings = append(u.findings, findings...)
	}
	return u.findings
}

func caseTimeout(parsed caseJSON) (time.Duration, error) {
	if !isUnitValue(parsed.Timeout) {
		return 0, nil
	}
	return parseDuration(parsed.Timeout, time.Millisecond, 168*time.Hour)
}

// resolve turns what was parsed into a Case with the paths of its files.
func (r *caseReader) resolve(file string, parsed caseJSON) Case {
	timeout, _ := caseTimeout(parsed) // what is wrong with it was reported before
	c := Case{
		Name: strings.TrimSuffix(path.Base(file), ".json"), File: file,
		Description: parsed.Description, Input: parsed.Input, Files: map[string]string{},
		Timeout: timeout,
		Expect:  parsed.Expect.Expect,
	}
	c.Expect.Subset, c.Expect.Files = parsed.Expect.Match == "subset", map[string]ExpectFile{}
	c.Models, c.Cassette = r.models(file, parsed.Models)
	c.Rehearsal = parsed.rehearsal()
	if c.Input == nil {
		c.Input = json.RawMessage("{}")
	}
	for _, field := range slices.Sorted(maps.Keys(parsed.Files)) {
		c.Files[field] = r.file(file, "/files/"+strictjson.Escape(field), parsed.Files[field])
	}
	for _, field := range slices.Sorted(maps.Keys(parsed.Expect.Files)) {
		want := parsed.Expect.Files[field]
		if want.SameAs != "" {
			want.SameAs = r.file(file, "/expect/files/"+strictjson.Escape(field)+"/same_as", want.SameAs)
		}
		c.Expect.Files[field] = want
	}
	return c
}

// models returns the answers that a case gives, or the path of the cassette that it names.
func (r *caseReader) models(file string, raw json.RawMessage) (answers json.RawMessage, cassette string) {
	var name string
	if raw == nil || json.Unmarshal(raw, &name) != nil {
		return raw, ""
	}
	return nil, r.file(file, "/models", name)
}

// file finds a data file of a case, named from tests/, within the capsule's directory.
func (r *caseReader) file(caseFile, pointer, name string) string {
	rel := path.Join(testsDir, name)
	if path.IsAbs(name) || !filepath.IsLocal(filepath.FromSlash(rel)) {
		r.report(caseFile, pointer, "the file "+fault.Quote(name)+" lies outside the capsule",
			"put it below tests/ and name it from there")
		return ""
	}
	err := r.source.check(rel)
	var p *problem
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.report(caseFile, pointer, "there is no file "+fault.Quote(rel),
			"add it, or fix the name (relative to tests/)")
	case errors.As(err, &p):
		r.report(caseFile, pointer, fault.Quote(rel)+": "+p.message, p.hint)
	}
	return filepath.Join(r.dir, filepath.FromSlash(rel))
}
