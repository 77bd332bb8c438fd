package agent

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/agent-on-demand/aod/capsule/outside"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// Where things lie in the sandbox.
const (
	WorkDir  = "/workspace" // the files of the patterns
	InputDir = "/io/input"  // those of the input
)

// NoKey is what {placeholder} stands for: a key that opens nothing, for programs that refuse
// to start without one.
const NoKey = "aod"

// Values are what the placeholders stand for in one run.
type Values struct {
	Message string
	File    string         // absolute, in the sandbox: the file with the message
	Files   []string       // absolute, in the sandbox: those that came with the input
	Output  string         // absolute, in the sandbox: where the output is expected
	Dir     string         // where the program starts
	Run     string         // the run's id
	Session string         // the id with which the program resumes
	Input   map[string]any // the fields of {input.NAME}, decoded
	Resume  bool           // Config.Resume is appended
}

// valueOf returns what a placeholder stands for; "" where there is nothing.
func (v Values) valueOf(name string) string {
	switch name {
	case "message":
		return v.Message
	case "file":
		return v.File
	case "files":
		return strings.Join(v.Files, " ")
	case "output":
		return v.Output
	case "dir":
		return v.Dir
	case "run":
		return v.Run
	case "session":
		return v.Session
	case "placeholder":
		return NoKey
	}
	if service, is := strings.CutPrefix(name, upstreamPrefix); is {
		return outside.UpstreamAddress + service
	}
	field, _ := strings.CutPrefix(name, inputPrefix)
	return text(v.Input[field])
}

// known are the placeholders of commands, but for those of fields.
var known = []string{"message", "file", "files", "output", "dir", "run", "session", "placeholder"}

// text writes a JSON value as an argument: a string as it is, nothing for null, all else as
// JSON.
func text(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return value
	}
	raw, err := strictjson.Encode(value)
	if err != nil {
		return fmt.Sprint(value) // it was decoded from JSON
	}
	return string(raw)
}

// InputFile returns the name below /workspace of the file with the message; "" without one.
func InputFile(c *Config, v Values) string { return fill(c.InputFile, v.valueOf) }

// OutputFile returns the name below /workspace of the file with the output; "" without one.
func OutputFile(c *Config, v Values) string { return fill(c.OutputFile, v.valueOf) }

// Dir returns where the program starts, an absolute path.
func Dir(c *Config) string { return cmp.Or(c.Dir, WorkDir) }
