package capsule

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
)

// A builder that gets a tar reads the Dockerfile in it, and COPY finds it there. So where
// .dockerignore leaves it out, all that is left lies one level below it, and the instructions
// that read the context look there.

// below is where the context lies then. The dot is where COPY --parents begins to count.
const below = "context/."

// AsWritten returns what a builder tells of an instruction in the words of the capsule's Dockerfile.
func AsWritten(told string) string { return strings.ReplaceAll(told, below+"/", "") }

// readsBelow returns a Dockerfile that reads its context one level below it. ok is false for one
// that another program than the builder's own interprets.
func readsBelow(text string) (moved string, ok bool) {
	text = strings.TrimPrefix(text, "\ufeff")
	lines := strings.Split(text, "\n")
	if strings.HasPrefix(strings.TrimSpace(text), "{") || foreignSyntax(lines) != "" {
		return "", false
	}
	escape := escapeOf(lines)
	var out []string
	for len(lines) > 0 {
		joined, rest := joinLine(lines, escape)
		words := strings.Fields(joined)
		if len(words) == 0 {
			out, lines = append(out, lines[:len(lines)-len(rest)]...), rest
			continue
		}
		body := skipHeredocs(words[0], joined, rest)
		written := strings.Join(lines[:len(lines)-len(rest)], "\n")
		out = append(append(out, readBelow(words, written)), rest[:len(rest)-len(body)]...)
		lines = body
	}
	return strings.Join(out, "\n"), true
}

// readBelow returns an instruction, which was written so, as it has to be where it reads the context.
func readBelow(words []string, written string) string {
	flags := 1
	for flags < len(words) && strings.HasPrefix(words[flags], "--") {
		flags++
	}
	switch head, args := words[:flags], words[flags:]; strings.ToUpper(words[0]) {
	case addWord, copyWord:
		if !fromElsewhere(words) && len(args) > 0 {
			return strings.Join(append(slices.Clone(head), sourcesBelow(args)...), " ")
		}
	case runWord:
		for _, flag := range head[1:] {
			written = strings.Replace(written, flag, mountBelow(flag), 1)
		}
	}
	return written
}

// sourcesBelow moves all but the target of a COPY or an ADD.
func sourcesBelow(args []string) []string {
	var list []string
	if text := strings.Join(args, " "); strings.HasPrefix(text, "[") && json.Unmarshal([]byte(text), &list) == nil {
		raw, err := json.Marshal(sourcesBelow(list))
		if err != nil {
			return args
		}
		return []string{string(raw)}
	}
	moved := slices.Clone(args)
	for i, source := range moved[:max(len(moved)-1, 0)] {
		if !inlineFile().MatchString(source) && !strings.Contains(source, "://") && !strings.HasPrefix(source, "git@") {
			moved[i] = sourceBelow(source)
		}
	}
	return moved
}

// sourceBelow moves a path of the context, which no ".." leads out of.
func sourceBelow(source string) string {
	if strings.Contains(source, "..") && !strings.Contains(source, "$") {
		source = path.Clean("/" + source)
	}
	return below + "/" + strings.TrimLeft(source, "/")
}

// mountBelow moves what a flag of RUN mounts of the context, if it mounts that.
func mountBelow(flag string) string {
	options, isMount := strings.CutPrefix(flag, "--mount=")
	fields, source := strings.Split(options, ","), -1
	for i, field := range fields {
		switch name, value, _ := strings.Cut(field, "="); {
		case name == "from", name == "type" && value != "bind":
			return flag
		case name == "source", name == "src":
			source = i
		}
	}
	switch {
	case !isMount:
		return flag
	case source < 0:
		fields = append(fields, "source="+below)
	default:
		name, value, _ := strings.Cut(fields[source], "=")
		fields[source] = name + "=" + sourceBelow(value)
	}
	return "--mount=" + strings.Join(fields, ",")
}
