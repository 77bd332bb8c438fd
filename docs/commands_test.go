package docs_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

var (
	spans  = regexp.MustCompile("`([^`\n]+)`")
	calls  = regexp.MustCompile(`(?:^|[ (])(aod [a-z].*)`)
	quoted = regexp.MustCompile(`'[^']*'|"[^"]*"`)
)

func TestTheCommandsShownExist(t *testing.T) {
	aod := program.Path(t)
	helps := map[string]string{"": help(t, aod)}
	for group := range groups {
		helps[group] = help(t, aod, group)
	}
	for _, name := range append([]string{handoffGuide}, guides...) {
		lines := commandLines(readGuide(t, name))
		if len(lines) == 0 && name != apiGuide {
			t.Errorf("%s shows no command", name)
		}
		for _, line := range lines {
			command, flags := parseCall(line)
			if !isCommand(helps, command) {
				t.Errorf("%s: %s: there is no command %q", name, line, command)
				continue
			}
			if _, asked := helps[command]; !asked {
				helps[command] = help(t, aod, strings.Fields(command)...)
			}
			for _, flag := range flags {
				if !hasFlag(helps[command], flag) {
					t.Errorf("%s: %s: aod %s has no flag %s", name, line, command, flag)
				}
			}
		}
	}
}

// groups are commands that do nothing but hold others.
var groups = map[string]bool{"agent": true, "au": true, "schedule": true, "secret": true, "token": true, "webhook": true, "worker": true}

// isCommand reports whether the help of aod, or of the group that it is in, lists a command.
func isCommand(helps map[string]string, command string) bool {
	group, name, inGroup := strings.Cut(command, " ")
	if !inGroup {
		group, name = "", command
	}
	return strings.Contains(helps[group], "\n  "+name+" ")
}

func hasFlag(help, flag string) bool {
	if len(flag) == 2 {
		return regexp.MustCompile(`(?m)^ +` + regexp.QuoteMeta(flag) + `, `).MatchString(help)
	}
	return regexp.MustCompile(`(?m)^ +(?:-\w, )?` + regexp.QuoteMeta(flag) + `(?:\s|$)`).MatchString(help)
}

// commandLines lists the calls of aod in the blocks for a shell and in code spans.
func commandLines(text string, blocks []block) []string {
	var candidates, found []string
	for _, m := range spans.FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
		candidates = append(candidates, m[1])
	}
	for _, b := range blocks {
		if b.title == "" && (b.language == "sh" || b.language == "console") {
			candidates = append(candidates, strings.Split(b.text, "\n")...)
		}
	}
	for _, line := range candidates {
		if m := calls.FindStringSubmatch(line); m != nil {
			found = append(found, m[1])
		}
	}
	return found
}

// parseCall returns the command of a call and the flags that follow it.
func parseCall(line string) (command string, flags []string) {
	line, _, _ = strings.Cut(quoted.ReplaceAllString(line, "x"), " #")
	words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == ')' })
	command = words[1]
	if groups[command] && len(words) > 2 {
		command += " " + words[2]
	}
	for _, word := range words[2:] {
		if word == "|" || word == "--" {
			break // what follows are another program's
		}
		if len(word) > 1 && word[0] == '-' {
			flag, _, _ := strings.Cut(word, "=")
			flags = append(flags, flag)
		}
	}
	return command, flags
}

func help(t *testing.T, aod string, command ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), aod, append(command, "--help")...).Output()
	if err != nil {
		t.Fatalf("aod %v --help: %v", command, err)
	}
	return string(out)
}

var punctuation = regexp.MustCompile(`[^\p{L}\p{N} _-]`) // has no place in an anchor

// anchorsOf lists what the headings of a text are linked by.
func anchorsOf(text string) map[string]bool {
	anchors := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
		words := punctuation.ReplaceAllString(strings.ToLower(m[1]), "")
		anchors[strings.ReplaceAll(words, " ", "-")] = true
	}
	return anchors
}
