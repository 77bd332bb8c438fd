package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const securityGuide = "security.md"

// proof is a row's list of tests, and the file in which they are.
var proof = regexp.MustCompile("((?:`Test\\w+`(?:, )?)+) in `([^`]+)`")

// A promise without a test is only a wish: each row names tests that exist where it says.
func TestEachPromiseHasItsTest(t *testing.T) {
	text, _ := readGuide(t, securityGuide)
	promises := 0
	for line := range strings.SplitSeq(text, "\n") {
		if !strings.HasPrefix(line, "| ") || !strings.Contains(line, "`Test") {
			continue
		}
		promises++
		found := proof.FindAllStringSubmatch(line, -1)
		if len(found) == 0 {
			t.Errorf("no test with its file: %s", line)
		}
		for _, m := range found {
			for _, name := range strings.Split(m[1], ", ") {
				requireTest(t, m[2], strings.Trim(name, "`"))
			}
		}
	}
	if proofs := strings.Count(text, "`Test"); promises < 25 || proofs < promises {
		t.Errorf("%s names %d tests for %d promises", securityGuide, proofs, promises)
	}
	for _, section := range []string{"What the sandbox promises", "What is promised of results, calls and files", "What is promised of a server"} {
		for _, row := range bodyRows(sectionOf(t, text, section)) {
			if !proof.MatchString(row) {
				t.Errorf("nothing proves: %s", row)
			}
		}
	}
}

func requireTest(t *testing.T, file, name string) {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("..", file))
	if err != nil {
		t.Error(err)
		return
	}
	if !strings.Contains(string(source), "\nfunc "+name+"(t *testing.T) {") {
		t.Errorf("%s has no test %s", file, name)
	}
}

// bodyRows are the rows of a section's table below its head.
func bodyRows(section string) (body []string) {
	_, table, _ := strings.Cut(section, "|---|---|\n")
	for line := range strings.SplitSeq(table, "\n") {
		if strings.HasPrefix(line, "|") {
			body = append(body, line)
		}
	}
	return body
}
