package agent

import (
	"strings"

	"github.com/agent-on-demand/aod/internal/lazyregexp"
)

// part is a piece of a template: text as it stands there, or the name of a placeholder.
type part struct {
	text string
	name string // "": text
}

// inBraces finds placeholders, {name}, and their escaped form, {{name}}, which stands for
// itself. Other braces are text.
var inBraces = lazyregexp.New(`\{\{[A-Za-z_][A-Za-z0-9_.-]*\}\}|\{[A-Za-z_][A-Za-z0-9_.-]*\}`)

// parse takes a template apart.
func parse(template string) []part {
	var parts []part
	for {
		at := inBraces().FindStringIndex(template)
		if at == nil {
			return appendText(parts, template)
		}
		found := template[at[0]:at[1]]
		parts = appendText(parts, template[:at[0]])
		if strings.HasPrefix(found, "{{") {
			parts = appendText(parts, found[1:len(found)-1])
		} else {
			parts = append(parts, part{name: found[1 : len(found)-1]})
		}
		template = template[at[1]:]
	}
}

func appendText(parts []part, text string) []part {
	if text == "" {
		return parts
	}
	return append(parts, part{text: text})
}

// Placeholders returns the names of the placeholders in a template, in their order.
func Placeholders(template string) []string {
	var names []string
	for _, p := range parse(template) {
		if p.name != "" {
			names = append(names, p.name)
		}
	}
	return names
}

// inputPrefix begins the name of a placeholder for a field of the input.
const inputPrefix = "input."

// upstreamPrefix begins the name of a placeholder for the address of an upstream.
const upstreamPrefix = "upstream."

// fill puts values into a template. What a value holds is never looked at again.
func fill(template string, valueOf func(name string) string) string {
	var b strings.Builder
	for _, p := range parse(template) {
		if p.name == "" {
			b.WriteString(p.text)
		} else {
			b.WriteString(valueOf(p.name))
		}
	}
	return b.String()
}
