package capsule

import (
	"maps"
	"testing"
)

// taskAlone are the changes that make the good capsule one without code.
var taskAlone = map[string]string{
	"src/main.py": missing, "agent.yaml": "name: good\nmodel: small\n", "src/ai/task.md": "Read $text, ${text}; it costs $$5.\n",
	"schema.json": `{"input": {"type": "object", "properties": {"text": {"type": "string"}}}, "output": {"type": "object"}}`,
}

func without(changes map[string]string) map[string]string {
	all := maps.Clone(taskAlone)
	maps.Copy(all, changes)
	return all
}

const declares = "- {name: read-x, description: Reads., parameters: {type: object}}\n"

func TestACapsuleWithoutCodeIsOneWithATask(t *testing.T) {
	cases := map[string]map[string]string{
		"a task is enough":                       {},
		"a list of models will do":               {"agent.yaml": "name: good\nmodels: [small]\n"},
		"it may say who the model is":            {"src/ai/system.md": "You read $text.\n"},
		"functions may be there":                 {"tools.yaml": declares, "src/tools.py": "async def read_x(): ...\n"},
		"functions may come from elsewhere":      {"tools.yaml": declares, "src/tools.py": "from x import (\n  read_x,\n)\n"},
		"calls of others need no function":       {"tools.yaml": "- {name: a, capsule: b}\n"},
		"with code nobody looks for all of that": {"agent.yaml": "name: good\n", "src/main.py": "def execute(p): ...\n", "src/ai/task.md": "$what $5", "tools.yaml": declares},
	}
	for name, changes := range cases {
		t.Run(name, func(t *testing.T) { loaded(t, newCapsule(t, without(changes))) })
	}
}

func TestWhatACapsuleWithoutCodeLacks(t *testing.T) {
	cases := []struct {
		name    string
		changes map[string]string
		want    string
	}{
		{"neither code nor a task", map[string]string{"src/ai/task.md": missing}, "src/main.py: it is missing (add it with a function: def execute(payload: dict) -> dict; or src/ai/task.md"},
		{"a model", map[string]string{"agent.yaml": "name: good\n"}, "agent.yaml: it names no model, and src/ai/task.md is a task for one (add model: NAME)"},
		{"anything to do", map[string]string{"src/ai/task.md": " \n"}, "src/ai/task.md: it is empty"},
		{"a field that the task names", map[string]string{"src/ai/task.md": "Read\n$txt\n"}, "src/ai/task.md:2: $txt isn't a field of the input (did you mean $text?)"},
		{"a field that the persona names", map[string]string{"src/ai/system.md": "${other}"}, "src/ai/system.md:1: $other isn't a field of the input (add the field"},
		{"a name after a $", map[string]string{"src/ai/task.md": "It costs $5\n"}, "src/ai/task.md:1: a $ stands for nothing (write $$"},
		{"the file of its functions", map[string]string{"tools.yaml": declares}, "src/tools.py: it is missing (add it with the functions that tools.yaml declares, such as def read_x)"},
		{"one of its functions", map[string]string{"tools.yaml": declares, "src/tools.py": "def read(): ...\n#def read_x():\n"}, "src/tools.py: it defines no function read_x"},
		{
			"a name of its own for each function",
			map[string]string{"tools.yaml": declares + "- {name: read_x, description: Reads., parameters: {type: object}}\n", "src/tools.py": "def read_x(): ...\n"},
			`tools.yaml: the tools "read-x" and "read_x" are the same function read_x`,
		},
		{
			"a name that a function can have",
			map[string]string{"tools.yaml": "- {name: 3d, description: Draws., parameters: {type: object}}\n", "src/tools.py": "\n"},
			`tools.yaml: the tool "3d" can't be a function`,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { checkFindings(t, newCapsule(t, without(c.changes)), c.want) })
	}
}
