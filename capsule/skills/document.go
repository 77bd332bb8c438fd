package skills

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/internal/wire/quantity"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
	"github.com/agent-on-demand/aod/internal/wire/strictyaml"
)

var (
	frontMatter = lazyregexp.New(`(?ms)\A(?:\x{FEFF})?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$`)
	skillName   = lazyregexp.New(`^[a-z0-9]+(-[a-z0-9]+)*$`)
)

// fields are what a front matter may have, and what each has to be.
var fields = map[string]struct {
	hint string
	ok   func(value any) bool
}{
	"name": {"", isText},
	"description": {
		fmt.Sprintf("say what it does and when it is used, in at most %d letters", maxDescription),
		func(value any) bool { return isText(value) && within(line(value), 1, maxDescription) },
	},
	"license": {"write its name as a text", isText},
	"compatibility": {
		fmt.Sprintf("say what it needs, in at most %d letters", maxCompatibility),
		func(value any) bool { return isText(value) && within(line(value), 1, maxCompatibility) },
	},
	"metadata":      {"write keys with values", func(value any) bool { _, is := value.(map[string]any); return is }},
	"allowed-tools": {"write names with spaces between them", isNames},
}

// parse reads the SKILL.md of a folder. A skill without a name is one whose document breaks the rules.
func parse(file, folder string, raw []byte) (Skill, []fault.Finding) {
	var front []byte
	if utf8.Valid(raw) {
		if found := frontMatter().FindSubmatch(raw); found != nil {
			front = append([]byte("\n"), found[1]...) // lines count from the file's first one
		}
	}
	if front == nil || len(front) > maxFrontBytes {
		return Skill{}, []fault.Finding{{
			File: file, Line: 1,
			Message: "it doesn't begin with a front matter in UTF-8 of at most " + quantity.SizeText(maxFrontBytes),
			Hint:    "write --- on the first line, name and description, and --- again",
		}}
	}
	doc, findings := strictyaml.Parse(file, front)
	if doc == nil {
		return Skill{}, findings
	}
	object, _ := doc.Value.(map[string]any)
	checked := check(object, folder)
	for i, f := range checked {
		checked[i].File, checked[i].Line = file, max(doc.LineAt(f.Pointer), 1)
	}
	findings = append(findings, checked...)
	if len(fault.Errors(findings)) > 0 {
		return Skill{}, findings
	}
	return Skill{Name: folder, Description: line(object["description"])}, findings
}

// check holds the fields against the rules.
func check(object map[string]any, folder string) (findings []fault.Finding) {
	report := func(key, message, hint string) {
		findings = append(findings, fault.Finding{Pointer: "/" + strictjson.Escape(key), Message: message, Hint: hint})
	}
	if !skillName().MatchString(folder) || len(folder) > maxName {
		report("name", fmt.Sprintf("%s can't be the name of a skill", fault.Quote(folder)),
			fmt.Sprintf("use lower-case letters and digits, joined by single hyphens, at most %d", maxName))
	} else if object["name"] != folder {
		report("name", "name isn't that of the folder", "write name: "+folder)
	}
	if _, there := object["description"]; !there {
		report("description", "description is missing", fields["description"].hint)
	}
	known := slices.Sorted(maps.Keys(fields))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		field, is := fields[key]
		switch {
		case !is:
			findings = append(findings, fault.Finding{
				Pointer: "/" + strictjson.Escape(key), Warning: true,
				Message: "the key " + fault.Quote(key) + " is none of a skill's",
				Hint:    fault.Suggest(key, known, "leave it out"),
			})
		case key != "name" && !field.ok(object[key]):
			report(key, key+" isn't what it has to be", field.hint)
		}
	}
	return findings
}

func isText(value any) bool { _, is := value.(string); return is }

func isNames(value any) bool {
	list, is := value.([]any)
	return isText(value) || is && !slices.ContainsFunc(list, func(item any) bool { return !isText(item) })
}

func within(text string, least, most int) bool {
	n := utf8.RuneCountInString(text)
	return least <= n && n <= most
}

// line returns a text in one line, without what steers a terminal; "" for what is none.
func line(value any) string {
	text, _ := value.(string)
	return strings.Join(strings.Fields(strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return ' '
	}, text)), " ")
}
