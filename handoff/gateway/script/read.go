package script

import (
	"fmt"
	"slices"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
	"github.com/agent-on-demand/aod/internal/wire/strictyaml"
)

// step is one answer of a script.
type step struct {
	text       string
	reasoning  string // before the text, in Chat Completions alone
	calls      []toolCall
	status     int // 0 is 200
	message    string
	retryAfter time.Duration
	pause      time.Duration
	usage      *usage // nil: counted by bytes
}

type toolCall struct{ name, arguments string }

type usage struct{ input, output int64 }

// Read reads a script. It is YAML, or JSON.
func Read(file string, raw []byte) (*Script, []fault.Finding) {
	doc, findings := strictyaml.Parse(file, raw)
	if len(findings) > 0 {
		return nil, findings
	}
	r := &reader{doc: doc}
	s := r.script(doc.Value)
	return s, r.findings
}

type reader struct {
	doc      *strictyaml.Document
	findings []fault.Finding
}

func (r *reader) report(at, message, hint string) {
	r.findings = append(r.findings,
		fault.Finding{File: r.doc.File, Line: r.doc.LineAt(at), Pointer: at, Message: message, Hint: hint})
}

func (r *reader) script(v any) *Script {
	s := &Script{runs: map[string]int{}}
	list, under := v, ""
	if object, ok := v.(map[string]any); ok {
		r.known("", object, "answers", "repeat", "shared")
		s.repeat, _ = object["repeat"].(bool)
		s.shared, _ = object["shared"].(bool)
		list, under = object["answers"], "/answers"
	}
	items, _ := list.([]any)
	if len(items) == 0 {
		r.report(under, "there are no answers", "write a list, such as [{text: Hello}]")
	}
	for i, item := range items {
		s.steps = append(s.steps, r.step(fmt.Sprintf("%s/%d", under, i), item))
	}
	return s
}

func (r *reader) known(at string, object map[string]any, names ...string) {
	for name := range object {
		if !slices.Contains(names, name) {
			r.report(at+"/"+strictjson.Escape(name), "an answer has nothing of this name",
				"there are text, reasoning, tool_calls, status, message, retry_after, pause and usage")
		}
	}
}

func (r *reader) step(at string, v any) step {
	object, ok := v.(map[string]any)
	if !ok {
		r.report(at, "an answer isn't a map", "write one such as {text: Hello}")
		return step{}
	}
	r.known(at, object, "text", "reasoning", "tool_calls", "status", "message", "retry_after", "pause", "usage")
	var s step
	s.text, _ = object["text"].(string)
	s.reasoning, _ = object["reasoning"].(string)
	s.message, _ = object["message"].(string)
	if status, ok := object["status"].(int64); ok {
		s.status = int(status)
	}
	if s.status != 0 && (s.status < 200 || s.status > 599) {
		r.report(at+"/status", "it isn't a status of HTTP", "write a number such as 429")
		s.status = 500
	}
	s.pause, s.retryAfter = r.duration(at, "pause", object["pause"]), r.duration(at, "retry_after",
		object["retry_after"])
	s.calls = r.calls(at+"/tool_calls", object["tool_calls"])
	if counts, ok := object["usage"].(map[string]any); ok {
		input, _ := counts["input"].(int64)
		output, _ := counts["output"].(int64)
		s.usage = &usage{max(input, 0), max(output, 0)}
	}
	if s.status == 0 && len(s.calls) == 0 && object["text"] == nil {
		r.report(at, "an answer has nothing to say", "give it text, tool_calls or status")
	}
	return s
}

// maxPause bounds how long an answer may take.
const maxPause = time.Hour

func (r *reader) duration(at, name string, v any) time.Duration {
	text, ok := v.(string)
	if v == nil {
		return 0
	}
	d, err := time.ParseDuration(text)
	if !ok || err != nil || d < 0 || d > maxPause {
		r.report(at+"/"+name, "it isn't a duration", "write one such as 200ms, up to 1h")
		return 0
	}
	return d
}

func (r *reader) calls(at string, v any) []toolCall {
	items, ok := v.([]any)
	if v != nil && !ok {
		r.report(at, "it isn't a list", "write one such as [{name: ocr, arguments: {page: 1}}]")
	}
	var all []toolCall
	for i, item := range items {
		object, _ := item.(map[string]any)
		name, _ := object["name"].(string)
		if name == "" {
			r.report(fmt.Sprintf("%s/%d", at, i), "a call has no name", "give it the name of a tool")
		}
		all = append(all, toolCall{name, arguments(object["arguments"])})
	}
	return all
}

// arguments writes what a call passes. A text goes on as it is, so that it may be broken.
func arguments(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	if v == nil {
		return "{}"
	}
	raw, _ := strictjson.Encode(v) // values of YAML can be written
	return string(raw)
}
