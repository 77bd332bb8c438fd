package capsule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

const (
	fromWord = "FROM"
	argWord  = "ARG"
	// mostValues bounds what the variables of one FROM stand for.
	mostValues = 100
)

// begins is Capsule.Bases of a Dockerfile's text. fetches is a FROM whose image is named by an
// address, or depends on something that the Dockerfile doesn't say; "" is none.
func begins(text string) (bases []string, fetches string) {
	lines := strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n")
	values := argValues(lines)
	seen := map[string]bool{}
	for i := range lines {
		words := wordsOf(lines[i:], fromWord)
		if !isFrom(words) || seen[words[0]] {
			continue
		}
		seen[words[0]] = true
		images, clear := resolve(words[0], values, mostNested)
		if !clear {
			return bases, fmt.Sprintf("FROM %s, whose image isn't known (Dockerfile:%d)", words[0], i+1)
		}
		for _, image := range images {
			if isByAddress(image) {
				return bases, fmt.Sprintf("FROM %s (Dockerfile:%d)", image, i+1)
			}
			if image != "scratch" && !slices.Contains(bases, image) {
				bases = append(bases, image)
			}
		}
	}
	return bases, ""
}

// isFrom reports whether a FROM may have these arguments.
func isFrom(words []string) bool {
	return len(words) == 1 || len(words) == 3 && strings.EqualFold(words[1], "as")
}

// wordsOf returns the arguments of an instruction that may begin at the first line, without
// flags.
func wordsOf(lines []string, instruction string) []string {
	joined, _ := joinWhile(lines, func(joined string) bool {
		words := strings.Fields(strings.ToUpper(joined))
		return len(words) == 0 || words[0] == instruction || len(words) == 1 && strings.HasPrefix(instruction, words[0])
	})
	words := strings.Fields(joined)
	if len(words) == 0 || !strings.EqualFold(words[0], instruction) {
		return nil
	}
	return slices.DeleteFunc(words[1:], func(word string) bool { return strings.HasPrefix(word, "--") })
}

// argValues returns what each ARG may stand for.
func argValues(lines []string) map[string][]string {
	values := map[string][]string{}
	for i := range lines {
		for _, word := range wordsOf(lines[i:], argWord) {
			if name, value, ok := strings.Cut(word, "="); ok && len(values[name]) < mostValues {
				values[name] = append(values[name], value)
			}
		}
	}
	return values
}

// mostReference bounds the name of an image, in bytes.
const mostReference = 512

// mostNested bounds how often the value of a variable may name another one.
const mostNested = 5

var variable = lazyregexp.New(`\$(?:(\w+)|\{(\w+)(?::?-([^{}]*))?\})`)

// resolve returns what a name with variables may stand for. It is not clear where a variable has
// no value in the Dockerfile, or an operator that isn't known here.
func resolve(name string, values map[string][]string, nested int) (all []string, clear bool) {
	if len(name) > mostReference {
		return nil, false
	}
	at := variable().FindStringSubmatchIndex(name)
	if at == nil {
		name = strings.NewReplacer(`"`, "", "'", "").Replace(name)
		return []string{name}, !strings.ContainsAny(name, "$\\`") && name != ""
	}
	part := func(n int) string {
		if at[2*n] < 0 {
			return ""
		}
		return name[at[2*n]:at[2*n+1]]
	}
	may := slices.Clone(values[part(1)+part(2)])
	if at[6] >= 0 {
		may = append(may, part(3))
	}
	if len(may) == 0 || nested == 0 {
		return nil, false
	}
	for _, value := range may {
		more, clear := resolve(name[:at[0]]+value+name[at[1]:], values, nested-1)
		if !clear || len(all)+len(more) > mostValues {
			return nil, false
		}
		all = append(all, more...)
	}
	return all, true
}
