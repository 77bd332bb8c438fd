package check

import (
	"fmt"

	"github.com/agent-on-demand/aod/internal/checklist"
)

// Verdict is the outcome of one check.
type Verdict = checklist.Verdict

// The verdicts.
const (
	Pass          = checklist.Pass
	Fail          = checklist.Fail
	NotApplicable = checklist.NotApplicable
)

// The reasons of verdicts show nothing of inputs and outputs.

func pass(format string, args ...any) (Verdict, string) { return Pass, fmt.Sprintf(format, args...) }

func fail(format string, args ...any) (Verdict, string) { return Fail, fmt.Sprintf(format, args...) }

func notApplicable(format string, args ...any) (Verdict, string) {
	return NotApplicable, fmt.Sprintf(format, args...)
}

// Judge judges an observation by all Checks. Of a unit that could not be started nothing was seen, so nothing of it is
// good.
func Judge(o Observation) checklist.Results {
	e := newEvidence(o)
	results := checklist.Judge(Checks, e)
	for i := range results {
		if result := &results[i]; result.ID != describeID && e.Runs[ScenarioDescribe].notStarted() {
			result.Verdict, result.Why = notApplicable(couldNotStart)
		}
	}
	return results
}

// rule makes one of Checks. The check knows its own place among them: each fact is the failure of one check.
func rule(
	id, title, section string, judge func(*evidence) (Verdict, string),
) checklist.Rule[*evidence] {
	return checklist.NewRule(id, title, section, func(e *evidence) (Verdict, string) {
		own := *e
		own.check = id
		return judge(&own)
	})
}

// The ids of checks that judge ends which are not the program's own. All others depend on the first.
const (
	describeID = "describe"
	exitID     = "exit-codes"
	memoryID   = "out-of-memory"
	timeID     = "in-time"
)

// Checks are all checks, in the order of the specification's checklist (section 10). Each
// item of the list has one check. Two items occur there twice and here once: that
// --describe validates, and that malformed input is handled. Two rules of other sections
// are added: that nothing is written (3.2), and that the same input gives the same output
// (2.2).
//
// A unit that can't be started fails the first, and nothing is said of the others.
var Checks = []checklist.Rule[*evidence]{
	rule(describeID, "--describe prints the model card and ends", "4.1, 10 core contract", judgeDescribe),
	rule("describe-schema", "the model card keeps describe.schema.json", "6.1, 10 core contract, 10 testing",
		judgeCard),
	rule("stdin-bytes", "stdin is read to its end, as bytes", "5.1, 10 core contract", judgeStdin),
	rule("stdout-json-only", "stdout is one JSON document and nothing else", "5.2, 10 core contract", judgeStdout),
	rule("stderr-only-errors", "errors go to stderr only", "5.3, 10 core contract", judgeErrorsApart),
	rule(exitID, "it exits with 0, 1, 2 or a code of its own", "3.1, 10 core contract", judgeExitCodes),

	rule("no-model-download", "a model that is missing is not fetched", "3.2, 10 security", judgeDownload),
	rule("path-traversal", "a path with .. in it is refused", "8.2, 10 security", judgeTraversal),
	rule("exit-huge-input", "an input that is too large is borne or refused", "8.1, 10 security", judgeHuge),
	rule("secrets-not-echoed", "no secret, input or argument shows up on stderr", "8.4, 10 security", judgeSecrets),
	rule("no-network", "the network is never tried, nor listened to", "3.2, 10 security", judgeNetwork),
	rule("no-files-written", "no file is written, nor is it tried", "3.2", judgeFiles),

	rule("error-messages", "a failure says what is wrong", "7.2, 10 error handling", judgeMessages),
	rule("exit-empty-input", "an empty input is borne or refused", "7.1, 10 error handling", judgeEmpty),
	rule("exit-corrupt-input", "a corrupt input is borne or refused", "7.1, 10 error handling, 10 testing",
		judgeCorrupt),
	rule(
		"exit-missing-model", "a model that isn't there is an invalid argument", "7.1, 10 error handling",
		judgeMissingModel,
	),
	rule(memoryID, "it ends in order when memory runs out", "7.1, 10 error handling", judgeLittleMemory),

	rule(
		"readme", "there is a README.md with examples", "10 documentation",
		ofSource("README.md with an example", func(s Source) bool { return s.Readme }),
	),
	rule("capabilities", "the model card lists capabilities", "6.3, 10 documentation", judgeCapabilities),
	rule("config-documented", "every parameter is described", "6.1, 10 documentation", judgeConfig),
	rule(
		"license", "there is a licence", "10 documentation",
		ofSource("licence", func(s Source) bool { return s.License }),
	),

	rule(
		"unit-tests", "its logic has unit tests", "10 testing",
		ofSource("unit tests", func(s Source) bool { return s.UnitTests }),
	),
	rule(
		"integration-tests", "it is tested with sample inputs", "10 testing",
		ofSource("tests with sample inputs", func(s Source) bool { return s.IntegrationTests }),
	),
	rule("deterministic", "the same input gives the same output", "2.2", judgeDeterministic),

	rule(timeID, "it takes reasonable time", "8.3, 10 performance", judgeTime),
	rule("memory-bound", "its memory is bounded", "8.3, 10 performance", judgeMemory),
	rule("no-leaks", "nothing of it is left when it has ended", "2.2, 10 performance", judgeLeaks),
}
