package agenthttp

import (
	"cmp"
	"strings"

	"github.com/agent-on-demand/aod/client/agenthttp/internal/document"
)

// maxReasons bounds how many errors of a list are told.
const maxReasons = 10

// errorMembers are those in which agents explain a failure: as a text, as an object with a code
// and a message, or as a list of such. "error" is the contract's own.
var errorMembers = []string{"error", "message", "detail"}

// codeOf finds an agent's own code of a failure, such as VALIDATION_ERROR.
func codeOf(f document.Fields) string {
	for _, name := range errorMembers {
		inner, err := document.Read(f.Object(name))
		if err == nil && inner.Text("code") != "" {
			return inner.Text("code")
		}
	}
	return cmp.Or(f.Text("code"), f.Text("error_code"))
}

// reasonOf finds an agent's explanation of a failure.
func reasonOf(f document.Fields) string {
	for _, name := range errorMembers {
		if text := cmp.Or(f.Text(name), messageOf(f.Object(name)), listed(f, name)); text != "" {
			return text
		}
	}
	return ""
}

// messageOf reads an error that is an object. Validators call its text msg.
func messageOf(raw []byte) string {
	f, err := document.Read(raw)
	if err != nil {
		return ""
	}
	return cmp.Or(f.Text("message"), f.Text("msg"))
}

// listed reads a list of errors, as validators of requests give them: each with a msg and the
// place that it is about. The value there, which some repeat, is left out.
func listed(f document.Fields, name string) string {
	var texts []string
	for _, raw := range f.List(name) {
		text := messageOf(raw)
		if text == "" || len(texts) == maxReasons {
			continue
		}
		if at := placeOf(raw); at != "" {
			text = at + ": " + text
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// placeOf is the place of an error, as names with dots.
func placeOf(raw []byte) string {
	f, err := document.Read(raw)
	if err != nil {
		return ""
	}
	var parts []string
	for _, part := range f.List("loc") {
		parts = append(parts, plainText(part))
	}
	return strings.Join(parts, ".")
}
