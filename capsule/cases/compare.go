// Package cases holds what came of a run against what a test case of its capsule expects.
//
// Compare returns a line for each difference, as a person wants to read it. The cases themselves are read by package
// capsule.
//
// It starts nothing: a run's record is what it is given.
//
// It must not know how a run is made.
//
// Its Go API may change with every release: see docs/stability.md.
package cases

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule"
)

// Compare says, a line each, how a run differs from what its test case expects; none where
// it doesn't. It reads the files that the case and the run name.
func Compare(want capsule.Expect, got api.Record) []string {
	lines := compareEnd(want, got)
	if want.Error != nil {
		return append(lines, compareError(*want.Error, got.Error)...)
	}
	if got.Error != nil && len(lines) > 0 {
		return append(lines, describeError(*got.Error)...)
	}
	if want.Output != nil && got.Output != nil {
		lines = append(lines, DiffJSON(want.Output, got.Output, want.Subset)...)
	}
	for field, file := range want.Files {
		lines = append(lines, compareFile(field, file, got.Files)...)
	}
	return lines
}

// CompareThat says which conditions of a test case aren't true of a run's output.
func CompareThat(ctx context.Context, test capsule.Case, got api.Record) (lines []string) {
	if got.Output == nil || len(test.Expect.That) == 0 { // that it failed is a difference already, or was expected
		return nil
	}
	run, err := capsule.NewGraded(test.Input, got.Output)
	if err != nil {
		return []string{"that: " + fault.Public(err).Msg}
	}
	for _, condition := range test.Expect.That {
		holds, err := run.Eval(ctx, capsule.Condition(condition))
		switch {
		case err != nil:
			lines = append(lines, fmt.Sprintf("that: %s: %s", condition, fault.Public(err).Msg))
		case holds != true:
			lines = append(lines, fmt.Sprintf("that: %s: it is %v", condition, holds))
		}
	}
	return lines
}

// ComparePath says how the nodes that a flow went through differ from what its test case
// expects.
func ComparePath(want capsule.Expect, got []string) []string {
	if want.Path == nil || slices.Equal(want.Path, got) {
		return nil
	}
	return []string{fmt.Sprintf("path: want %s, got %s", strings.Join(want.Path, " "), strings.Join(got, " "))}
}

// compareEnd checks outcome and exit code. Where a case says neither and expects no
// error, the run has to succeed.
func compareEnd(want capsule.Expect, got api.Record) []string {
	var lines []string
	outcome := api.Outcome(want.Outcome)
	if outcome == "" && want.Error == nil && want.ExitCode == nil {
		outcome = api.Success
	}
	if outcome != "" && outcome != got.Outcome {
		lines = append(lines, fmt.Sprintf("outcome: want %s, got %s", outcome, got.Outcome))
	}
	if want.ExitCode != nil && (got.ExitCode == nil || *want.ExitCode != *got.ExitCode) {
		lines = append(lines, fmt.Sprintf("exit code: want %d, got %s", *want.ExitCode, codeText(got.ExitCode)))
	}
	return lines
}

func codeText(code *int) string {
	if code == nil {
		return "none: it never started"
	}
	return fmt.Sprint(*code)
}

func compareError(want capsule.ExpectError, got *api.RunError) []string {
	if got == nil {
		return []string{"error: want one, got success"}
	}
	var lines []string
	if want.Type != "" && want.Type != got.Type {
		lines = append(lines, fmt.Sprintf("error type: want %q, got %q", want.Type, got.Type))
	}
	if !strings.Contains(strings.Join(describeError(*got), "\n"), want.Message) {
		lines = append(lines, fmt.Sprintf("error message: want one with %q in it, got %q", want.Message, got.Message))
	}
	return lines
}

func describeError(e api.RunError) []string {
	lines := strings.Split(e.Message, "\n")
	for _, f := range e.Findings {
		lines = append(lines, f.String())
	}
	return lines
}

// compareFile checks the output file that a field of the output names.
func compareFile(field string, want capsule.ExpectFile, files []api.File) []string {
	got, found := fileOf(field, files)
	if !found {
		return []string{fmt.Sprintf("file %s: want one, got none", field)}
	}
	var lines []string
	if want.SHA256 != "" && want.SHA256 != got.SHA256 {
		lines = append(lines, fmt.Sprintf("file %s: want sha256 %s, got %s", field, want.SHA256, got.SHA256))
	}
	if got.SizeBytes < want.MinBytes {
		lines = append(lines, fmt.Sprintf("file %s: want at least %d bytes, got %d", field, want.MinBytes,
			got.SizeBytes))
	}
	if want.SameAs != "" {
		lines = append(lines, sameContent(field, want.SameAs, got.Path)...)
	}
	return lines
}

// fileOf finds a file by the top-level or dotted field that names it.
func fileOf(field string, files []api.File) (api.File, bool) {
	pointer := "/" + strings.ReplaceAll(strings.TrimPrefix(field, "/"), ".", "/")
	for _, f := range files {
		if f.Pointer != nil && *f.Pointer == pointer {
			return f, true
		}
	}
	return api.File{}, false
}

func sameContent(field, wantPath, gotPath string) []string {
	want, err := os.ReadFile(wantPath)
	if err != nil {
		return []string{fmt.Sprintf("file %s: %v", field, err)}
	}
	got, err := os.ReadFile(gotPath)
	if err != nil {
		return []string{fmt.Sprintf("file %s: %v", field, err)}
	}
	if bytes.Equal(want, got) {
		return nil
	}
	line := 1 + bytes.Count(want[:commonPrefix(want, got)], []byte("\n"))
	return []string{fmt.Sprintf("file %s: differs from %s at line %d (%d bytes, want %d)", field, wantPath, line,
		len(got), len(want))}
}

func commonPrefix(a, b []byte) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
