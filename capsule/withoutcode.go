package capsule

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/lazyregexp"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

const (
	taskFile   = "src/ai/task.md"
	systemFile = "src/ai/system.md"
	codeFile   = "src/tools.py"
)

// checkWithoutCode checks a capsule whose program is its task: a model that works by it.
func (d *Directory) checkWithoutCode(c *Capsule, task []byte) {
	if c.Agent.Model == "" && len(c.Agent.Models) == 0 {
		d.report(agentFile, 0, "it names no model, and "+taskFile+" is a task for one", "add model: NAME")
	}
	if strings.TrimSpace(string(task)) == "" {
		d.report(taskFile, 0, "it is empty", "write what the model is to do; $name stands for a field of the input")
	}
	fields := d.inputFields()
	d.checkNames(taskFile, string(task), fields)
	if system, ok := d.readOptional(systemFile); ok {
		d.checkNames(systemFile, string(system), fields)
	}
	d.checkFunctions(c.Tools)
}

// inputFields lists the fields of the input; nil where the contract can't be read, which is
// reported elsewhere.
func (d *Directory) inputFields() []string {
	raw, err := d.source.read("schema.json", maxFileBytes)
	if err != nil {
		return nil
	}
	document, err := strictjson.Decode(raw)
	if err != nil {
		return nil
	}
	properties, _ := strictjson.Lookup(document, []string{"input", "properties"})
	fields, _ := properties.(map[string]any)
	return append([]string{}, slices.Sorted(maps.Keys(fields))...)
}

// placeholder is what Python's string.Template looks for.
var placeholder = lazyregexp.New(`\$(?:(\$)|([_A-Za-z][_A-Za-z0-9]*)|\{([_A-Za-z][_A-Za-z0-9]*)\})?`)

// checkNames reports what stands for no field of the input.
func (d *Directory) checkNames(file, text string, fields []string) {
	if fields == nil {
		return
	}
	for _, m := range placeholder().FindAllStringSubmatchIndex(text, -1) {
		line := 1 + strings.Count(text[:m[0]], "\n")
		name := group(text, m, 2) + group(text, m, 3)
		switch {
		case m[2] >= 0: // $$
		case name == "":
			d.report(file, line, "a $ stands for nothing",
				"write $$ for one that stands for itself, $name for a field of the input")
		case !slices.Contains(fields, name):
			d.report(file, line, fmt.Sprintf("$%s isn't a field of the input", fault.Clip(name, fault.MaxQuoted)),
				nameHint(name, fields))
		}
	}
}

func group(text string, m []int, n int) string {
	if m[2*n] < 0 {
		return ""
	}
	return text[m[2*n]:m[2*n+1]]
}

func nameHint(name string, fields []string) string {
	if near := fault.Nearest(name, fields); near != "" {
		return "did you mean $" + near + "?"
	}
	return "add the field to the input in schema.json, or write $$ for a $ that stands for itself"
}

// checkFunctions looks for the functions that tools.yaml declares.
func (d *Directory) checkFunctions(tools []Tool) {
	var declared []Tool
	for _, tool := range tools {
		if tool.Capsule == "" && tool.Name != "" {
			declared = append(declared, tool)
		}
	}
	if len(declared) == 0 {
		return
	}
	raw, ok := d.ReadFile(codeFile, "add it with the functions that "+toolsFile+" declares, such as def "+
		functionName(declared[0].Name))
	if !ok {
		return
	}
	seen := map[string]string{}
	for _, tool := range declared {
		name := functionName(tool.Name)
		if other, twice := seen[name]; twice {
			d.report(toolsFile, 0, fmt.Sprintf("the tools %s and %s are the same function %s", fault.Quote(other),
				fault.Quote(tool.Name), name), "give one of them another name")
			continue
		}
		seen[name] = tool.Name
		if name[0] >= '0' && name[0] <= '9' {
			d.report(toolsFile, 0, fmt.Sprintf("the tool %s can't be a function: its name begins with a digit",
				fault.Quote(tool.Name)), "give it another name")
			continue
		}
		if !defines(raw, name) {
			d.report(codeFile, 0, "it defines no function "+name+", which "+toolsFile+" declares",
				"add: def "+name+"(…)")
		}
	}
}

// functionName is the function of a tool: names in Python have no "-".
func functionName(tool string) string { return strings.ReplaceAll(tool, "-", "_") }

// defines reports whether Python code has a function of that name at its top, or may have.
func defines(code []byte, name string) bool {
	pattern := `(?m)^(async[ \t]+)?def[ \t]+` + regexp.QuoteMeta(name) + `[ \t]*\(|^` + regexp.QuoteMeta(name) +
		`[ \t]*=|^from[ \t]+\S+[ \t]+import[ \t]+([^#\n]*\b` + regexp.QuoteMeta(name) + `\b|\*|\()`
	return regexp.MustCompile(pattern).Match(code)
}
