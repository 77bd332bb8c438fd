package capsule

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

// Builders read a Dockerfile in different ways: older ones know no here-documents, a line's
// end that is escaped twice goes on for some. So every line counts as the beginning of an
// instruction, also one that only looks like it, and whatever follows an escape belongs to it.

// fetches is Capsule.Fetches of a Dockerfile's text.
func fetches(text string) string {
	text = strings.TrimPrefix(text, "\ufeff")
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return "a JSON document that names what reads it"
	}
	lines := strings.Split(text, "\n")
	if found := foreignSyntax(lines); found != "" {
		return found
	}
	values := argValues(lines)
	for i := range lines {
		if found := fetchedBy(lines[i:], values); found != "" {
			return fmt.Sprintf("%s (Dockerfile:%d)", found, i+1)
		}
	}
	return ""
}

// TriggerFetches is Capsule.Fetches of an ONBUILD instruction of a base image, without its word
// ONBUILD.
func TriggerFetches(instruction string) string {
	return fetchedBy(strings.Split(instruction, "\n"), nil)
}

var (
	syntaxDirective = lazyregexp.New(`(?i)^(?:#|//)\s*syntax\s*=\s*(\S*)`)
	plainSyntax     = lazyregexp.New(`^(?:docker\.io/)?docker/dockerfile(?:[:@].*)?$`)
)

// foreignSyntax returns the directive by which another program than the builder's own reads
// the file. Directives stand before the first instruction.
func foreignSyntax(lines []string) string {
	for i, line := range lines {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "//") {
			return ""
		}
		if m := syntaxDirective().FindStringSubmatch(line); m != nil && !plainSyntax().MatchString(m[1]) {
			return fmt.Sprintf("# syntax=%s (Dockerfile:%d)", m[1], i+1)
		}
	}
	return ""
}

const (
	// mostContinued bounds the lines of one instruction, and so the time to read a Dockerfile.
	mostContinued = 100
	addWord       = "ADD"
	onbuildWord   = "ONBUILD"
)

// fetchedBy returns what the instruction fetches that may begin at the first line.
func fetchedBy(lines []string, values map[string][]string) string {
	joined, whole := joinWhile(lines, mayFetch)
	words := strings.Fields(joined)
	for len(words) > 0 && strings.EqualFold(words[0], onbuildWord) {
		words = words[1:]
	}
	if len(words) == 0 {
		return ""
	}
	_, rest, _ := strings.Cut(joined, words[0])
	switch word := strings.ToUpper(words[0]); word {
	case addWord:
		return addedBy(rest, whole)
	case copyWord, runWord:
		return pulledBy(word, rest, whole, values)
	}
	return ""
}

// addedBy returns what an ADD fetches.
func addedBy(args string, whole bool) string {
	if !whole {
		return fmt.Sprintf("an ADD of more than %d lines", mostContinued)
	}
	for _, source := range addSources(args) {
		if mayBeRemote(source) {
			return "ADD " + fault.Quote(source)
		}
	}
	return ""
}

// joinWhile joins a line with those that may continue it, as long as the instruction may be the
// one that is looked for. whole is false if there are too many.
func joinWhile(lines []string, may func(joined string) bool) (joined string, whole bool) {
	var b strings.Builder
	for i, line := range lines {
		if i > mostContinued {
			return b.String(), false
		}
		if i > 0 && isComment(line) {
			continue
		}
		before, continued := continues(line)
		b.WriteString(before)
		if !continued || !may(b.String()) {
			return b.String(), true
		}
	}
	return b.String(), true
}

func isComment(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || strings.HasPrefix(line, "#")
}

// continues reports whether a line may go on in the next one, by either escape, and returns it
// without that.
func continues(line string) (before string, continued bool) {
	line = strings.TrimRight(line, " \t\r")
	before = strings.TrimRight(line, "\\`")
	return before, len(before) < len(line)
}

var fetchingWords = []string{addWord, copyWord, runWord}

// mayFetch reports whether a text can still become an instruction that fetches.
func mayFetch(text string) bool {
	begins := "" // the instruction, or the beginning of its word
	for word := range strings.FieldsSeq(text) {
		switch upper := strings.ToUpper(word); {
		case begins == copyWord || begins == runWord:
			return strings.HasPrefix(word, "-") // flags come first
		case begins != "":
			return false
		case upper == addWord:
			return true
		case upper != onbuildWord:
			begins = upper
		}
	}
	return begins == "" ||
		slices.ContainsFunc(append(fetchingWords, onbuildWord),
			func(word string) bool { return strings.HasPrefix(word, begins) })
}

var inlineFile = lazyregexp.New(`^<<-?(?:\w+|"\w+"|'\w+')$`)

// addSources returns what the arguments of an ADD name, without flags, inline files and the
// target.
func addSources(args string) []string {
	words := strings.Fields(args)
	for len(words) > 0 && strings.HasPrefix(words[0], "--") {
		words = words[1:]
	}
	if list := strings.TrimSpace(strings.Join(words, " ")); strings.HasPrefix(list, "[") {
		var parsed []string
		if json.Unmarshal([]byte(list), &parsed) == nil {
			words = parsed
		}
	}
	if len(words) > 1 {
		words = words[:len(words)-1]
	}
	return slices.DeleteFunc(slices.Clone(words), inlineFile().MatchString)
}

// mayBeRemote reports whether a source of an ADD could be anything but a file of the build
// context, whatever its variables stand for.
func mayBeRemote(source string) bool {
	lower := strings.ToLower(source)
	switch {
	case strings.ContainsAny(source, ":\\\"'`"), strings.HasPrefix(lower, "github.com/"),
		strings.HasPrefix(lower, "git@"):
		return true
	case strings.HasPrefix(source, "./"), strings.HasPrefix(source, "../"), strings.HasPrefix(source, "/"):
		return false
	}
	return strings.Contains(source, "$")
}
