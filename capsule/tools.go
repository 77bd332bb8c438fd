package capsule

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/internal/wire/strictyaml"
	"github.com/agent-on-demand/aod/schemas"
)

const (
	toolsFile = "tools.yaml"
	maxTools  = 256
)

// FinalAnswer is the tool with which a model gives its answer, of the loop in the Python library. No other may have its
// name.
const FinalAnswer = "final_answer"

// toolYAML is an entry as it stands there: what has a unit is not yet read.
type toolYAML struct {
	Tool
	Timeout any `json:"timeout"`
}

// toolShape is the schema of a single entry; the list around it is checked by hand.
var toolShape = sync.OnceValue(func() shape {
	items, _ := parseSchema(schemas.Tools())["items"].(map[string]any)
	return mustShape(items, true)
})

func toolsOf(doc *strictyaml.Document) ([]Tool, []fault.Finding) {
	list, ok := doc.Value.([]any)
	at := fault.Finding{File: doc.File, Line: doc.LineAt("")}
	switch {
	case doc.Value == nil:
		return nil, nil
	case !ok:
		at.Message, at.Hint = "it must be a list", "begin each tool with - name: …, or write [] for none"
		return nil, []fault.Finding{at}
	case len(list) > maxTools:
		at.Message = fmt.Sprintf("it lists more than %d tools", maxTools)
		at.Hint = "one capsule does one task: give it fewer tools"
		return nil, []fault.Finding{at}
	}
	var tools []Tool
	var findings []fault.Finding
	for i, entry := range list {
		tool, more := toolOf(entry)
		tools = append(tools, tool)
		findings = append(findings, placed(more, doc, "/"+strconv.Itoa(i))...)
	}
	return tools, append(findings, duplicates(tools, doc)...)
}

// toolOf reads one entry.
func toolOf(entry any) (Tool, []fault.Finding) {
	object, ok := entry.(map[string]any)
	if !ok {
		return Tool{}, []fault.Finding{{
			Message: "a tool must have keys with values",
			Hint:    "write it as {name, capsule, tool, description, parameters}",
		}}
	}
	var u units
	timeLimit := u.duration("/timeout", object["timeout"], time.Millisecond, 168*time.Hour)
	known := slices.Concat(checkTarget(object), checkParameters(object), checkToolName(object), u.findings)
	findings := toolShape().check(object, known)
	tool := decoded[toolYAML](object).Tool // what has the wrong type was just reported
	tool.Timeout = timeLimit
	return tool, findings
}

// checkTarget finds the tools that nobody could answer: a capsule's tool that doesn't
// say which capsule, and a function that doesn't say what it is.
func checkTarget(object map[string]any) []fault.Finding {
	target, names := object["capsule"]
	name, _ := target.(string)
	switch {
	case names && (target == nil || target == ""):
		return []fault.Finding{{
			Pointer: "/capsule", Message: "the tool has no target: capsule is empty",
			Hint: "name the capsule that it calls, or leave capsule out for a function of your own",
		}}
	case names && name != "":
		return checkTargetName(name)
	case names:
		return nil
	}
	if _, one := object["tool"]; one {
		return []fault.Finding{{
			Pointer: "/tool", Message: "tool: it has no meaning without capsule",
			Hint: "name the MCP server that has the tool in capsule",
		}}
	}
	var lacks []string
	for _, key := range []string{"description", "parameters"} {
		if _, ok := object[key]; !ok {
			lacks = append(lacks, key)
		}
	}
	if lacks == nil {
		return nil
	}
	what := strings.Join(lacks, " and ")
	return []fault.Finding{{
		Message: "the tool has no target: it names no capsule, and for a function of your own it lacks " + what,
		Hint:    "add capsule: NAME, or for a function " + what,
	}}
}

// checkToolName refuses the name of the tool with which a model answers.
func checkToolName(object map[string]any) []fault.Finding {
	if object["name"] != FinalAnswer {
		return nil
	}
	return []fault.Finding{{
		Pointer: "/name", Message: "a tool can't be called " + FinalAnswer +
			": that is the tool with which a model answers", Hint: "give it another name",
	}}
}

func checkTargetName(name string) []fault.Finding {
	err := api.CheckUnitName(name)
	if err == nil {
		return nil
	}
	public := fault.Public(err)
	return []fault.Finding{{Pointer: "/capsule", Message: public.Msg, Hint: public.Hint}}
}

// checkParameters checks that the parameters are a JSON Schema of an object.
func checkParameters(object map[string]any) []fault.Finding {
	parameters, ok := object["parameters"].(map[string]any)
	if !ok {
		return nil // missing, or the schema's to report
	}
	const at = "/parameters"
	if parameters["type"] != "object" {
		return []fault.Finding{{
			Pointer: at, Message: "the parameters aren't a JSON Schema of an object",
			Hint: "write {type: object, properties: {…}}",
		}}
	}
	raw, err := json.Marshal(parameters)
	if err != nil {
		return []fault.Finding{{
			Pointer: at, Message: "the parameters can't be written as JSON",
			Hint: "write a JSON Schema",
		}}
	}
	_, findings := contract.Compile(raw)
	for i := range findings {
		findings[i].Pointer = at + findings[i].Pointer
	}
	return findings
}

func duplicates(tools []Tool, doc *strictyaml.Document) []fault.Finding {
	var findings []fault.Finding
	first := map[string]int{}
	for i, t := range tools {
		pointer := fmt.Sprintf("/%d/name", i)
		line, taken := first[t.Name]
		if taken && t.Name != "" {
			findings = append(findings, fault.Finding{
				File: doc.File, Line: doc.LineAt(pointer), Pointer: pointer,
				Message: fmt.Sprintf("the tool %s stands twice, first in line %d", fault.Quote(t.Name), line),
				Hint:    "give it another name",
			})
			continue
		}
		first[t.Name] = doc.LineAt(pointer)
	}
	return findings
}
