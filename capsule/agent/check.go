package agent

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/strictjson"
)

// checker gathers what is wrong with a Config.
type checker struct {
	*Config
	fields   []string // of the input; nil: any
	findings []fault.Finding
}

// Check returns what is wrong with a configuration, by pointers into agent.yaml. The fields are
// those that its input may have, for {input.NAME}; nil is any.
func Check(c *Config, fields []string) []fault.Finding {
	k := checker{Config: c, fields: fields}
	k.checkCommand()
	k.checkPatterns()
	k.checkResult()
	k.checkMode()
	k.checkEnv()
	k.checkApprovers()
	if dir := path.Clean(c.Dir); c.Dir != "" && (!path.IsAbs(c.Dir) || dir != c.Dir) {
		k.report("/agent/dir", "agent.dir: it isn't an absolute path without . and ..",
			"write one such as /workspace/project")
	}
	return k.findings
}

func (k *checker) checkApprovers() {
	if err := api.CheckApprovers(k.Approvers); err != nil {
		told := fault.Public(err)
		k.report("/agent/approvers", "agent.approvers: "+told.Msg, told.Hint)
	}
	if len(k.Approvers) > 0 && k.Approval != Ask {
		k.report("/agent/approvers", "agent.approvers: nobody is asked", "add approval: ask")
	}
}

func (k *checker) report(pointer, message, hint string) {
	k.findings = append(k.findings, fault.Finding{Pointer: pointer, Message: message, Hint: hint})
}

func (k *checker) checkCommand() {
	if len(k.Command) == 0 {
		return // the schema says it
	}
	if len(Placeholders(k.Command[0])) > 0 {
		k.report("/agent/command/0", "agent.command: the program itself can't be a placeholder",
			"write its name; a warm container waits with it")
	}
	open := true
	for i, template := range k.Command {
		at := "/agent/command/" + strconv.Itoa(i)
		k.checkTemplate(at, template)
		if i > 0 && open && template == "{message}" && !strings.HasPrefix(k.Command[i-1], "-") {
			k.findings = append(k.findings, fault.Finding{
				Pointer: at, Warning: true,
				Message: "agent.command: a message that begins with \"-\" is refused here, as the program would take " +
					"it for an option",
				Hint: "put an element -- before it if the program knows that, or use input: stdin",
			})
		}
		open = open && template != endOfOptions
	}
	for i, template := range k.Resume {
		k.checkTemplate("/agent/resume/"+strconv.Itoa(i), template)
	}
	for _, name := range slices.Sorted(maps.Keys(k.Flags)) {
		if value, ok := k.Flags[name].(string); ok {
			k.checkTemplate("/agent/flags/"+strictjson.Escape(name), value)
		}
	}
}

// checkTemplate finds placeholders that stand for nothing.
func (k *checker) checkTemplate(pointer, template string) {
	if strings.ContainsRune(template, 0) {
		k.report(pointer, named(pointer)+"it has a NUL byte in it", "leave it out")
	}
	for _, name := range Placeholders(template) {
		field, isField := strings.CutPrefix(name, inputPrefix)
		service, isUpstream := strings.CutPrefix(name, upstreamPrefix)
		switch {
		case isUpstream:
			k.checkUpstream(pointer, service)
		case isField:
			k.checkField(pointer, field)
		case !slices.Contains(known, name):
			hint := "there are {" + strings.Join(known, "}, {") + "}, {input.NAME} and {upstream.NAME}; {{" + name +
				"}} stands for itself"
			if near := fault.Nearest(name, known); near != "" {
				hint = "did you mean {" + near + "}?"
			}
			k.report(pointer, named(pointer)+"the placeholder {"+name+"} is not known", hint)
		case name == "file" && k.Input != File:
			k.report(pointer, named(pointer)+"{file} is the file of input: file",
				"set input: file and input_file, or use {files} for those that come with the input")
		case name == "output" && k.Output != File:
			k.report(pointer, named(pointer)+"{output} is the file of output: file", "set output: file and output_file")
		}
	}
}

func (k *checker) checkUpstream(pointer, name string) {
	if slices.Contains(k.Upstreams, name) {
		return
	}
	hint := "add it to upstreams in agent.yaml"
	if near := fault.Nearest(name, k.Upstreams); near != "" {
		hint = "did you mean {upstream." + near + "}?"
	}
	k.report(pointer, named(pointer)+"{upstream."+name+"} isn't an upstream that agent.yaml names", hint)
}

func (k *checker) checkField(pointer, field string) {
	if k.fields == nil || slices.Contains(k.fields, field) {
		return
	}
	hint := "add the field to the input in schema.json"
	if near := fault.Nearest(field, k.fields); near != "" {
		hint = "did you mean {input." + near + "}?"
	}
	k.report(pointer, named(pointer)+"{input."+field+"} isn't a field of the input", hint)
}

// named puts the key of a pointer before a message.
func named(pointer string) string {
	parts := strictjson.Path(pointer)
	if len(parts) > 2 { //nolint:mnd // agent.KEY
		parts = parts[:2]
	}
	return strings.Join(parts, ".") + ": "
}

func (k *checker) checkPatterns() {
	k.checkFile("input", k.Input == File, k.InputFile)
	k.checkFile("output", k.Output == File, k.OutputFile)
	if k.Input == File && k.Output == File && k.InputFile != "" && k.InputFile == k.OutputFile {
		k.report("/agent/output_file", "agent.output_file: it is the input_file as well",
			"give the output a file of its own")
	}
	if k.Input == Args && !slices.ContainsFunc(k.templates(false), takesInput) {
		k.report("/agent/command", "agent.command: with input: args nothing of the input comes to the program",
			"add {message} or {input.NAME} to it, or use input: stdin")
	}
	if (k.Input == JSONRPC) != (k.Output == JSONRPC) {
		k.report("/agent/output", "agent.output: json-rpc goes both ways",
			"set input and output to json-rpc, or neither")
	}
}

func takesInput(template string) bool {
	return slices.ContainsFunc(Placeholders(template), func(name string) bool {
		return name == "message" || name == "files" || strings.HasPrefix(name, inputPrefix)
	})
}

// checkFile checks the template of input_file or output_file.
func (k *checker) checkFile(side string, wanted bool, file string) {
	pointer := "/agent/" + side + "_file"
	switch {
	case wanted && file == "":
		k.report("/agent/"+side, "agent."+side+": file needs the file's name", "add "+side+"_file: NAME, a file below "+
			WorkDir)
		return
	case file == "":
		return
	case !wanted:
		k.report(pointer, named(pointer)+"it has no meaning without "+side+": file",
			"leave it out, or set "+side+": file")
		return
	}
	for _, name := range Placeholders(file) {
		if name != "run" {
			k.report(pointer, named(pointer)+"the placeholder {"+name+"} has no meaning in a file's name",
				"there is {run}, the run's id")
			return
		}
	}
	if !isBelow(file) {
		k.report(pointer, named(pointer)+fault.Quote(file)+" is not a file below "+WorkDir,
			"write a relative path without . and ..")
	}
}

// isBelow reports whether a path leads to something below the directory that it begins in.
func isBelow(file string) bool {
	return !path.IsAbs(file) && path.Clean(file) == file && file != "." && file != ".." &&
		!strings.HasPrefix(file, "../") && !strings.ContainsRune(file, 0)
}

func (k *checker) checkResult() {
	r := k.Result
	picks := map[string]*Pick{
		"text": r.Text, "session": r.Session, "usage": r.Usage, "cost_usd": r.CostUSD,
		"error": r.Error,
	}
	for _, name := range slices.Sorted(maps.Keys(picks)) {
		p := picks[name]
		if p == nil {
			continue
		}
		pointer := "/agent/result/" + name
		if r.Format != JSON && r.Format != JSONL && k.Output != JSONRPC {
			k.report(pointer, "agent.result: "+name+" can't be found in a text",
				"set format: json or jsonl, or leave it out")
			continue
		}
		for _, at := range slices.Sorted(maps.Keys(p.When)) {
			k.checkPointer(pointer, at)
		}
		k.checkPointer(pointer, p.At)
	}
	if r.Error != nil && len(r.Error.When) == 0 && r.Error.At == "" {
		k.report("/agent/result/error", "agent.result: error would be found in every document",
			"add when: {/POINTER: VALUE}, or at")
	}
	if r.Format == JSONL && r.Text == nil {
		k.report("/agent/result", "agent.result: format jsonl has to say which line has the text",
			"add text: {at: /POINTER, when: {/POINTER: VALUE}}")
	}
}

func (k *checker) checkPointer(at, pointer string) {
	if pointer != "" && !strings.HasPrefix(pointer, "/") {
		k.report(at, "agent.result: "+fault.Quote(pointer)+" isn't a JSON pointer", "begin it with /, such as /result")
	}
}

func (k *checker) checkMode() {
	speaks := k.Mode == Interactive && k.Session.KeepAlive || k.Input == JSONRPC
	switch {
	case speaks && k.Protocol == "":
		k.report("/agent", "agent: it has to say what the program speaks", "add protocol: acp, stream-json or json-rpc")
	case !speaks && k.Protocol != "":
		k.report("/agent/protocol", "agent.protocol: it has no meaning without input: json-rpc or session.keep_alive",
			"leave it out")
	}
	if k.Protocol == PlainRPC && k.RPC.Method == "" {
		k.report("/agent/protocol", "agent.protocol: json-rpc needs the name of a method", "add rpc: {method: NAME}")
	}
	if k.Protocol != PlainRPC && k.RPC.Method != "" {
		k.report("/agent/rpc", "agent.rpc: it has no meaning without protocol: json-rpc", "leave it out")
	}
	if k.Mode != Interactive && len(k.Resume) > 0 {
		k.report("/agent/resume", "agent.resume: it has no meaning without mode: interactive",
			"leave it out, or set mode: interactive")
	}
	if k.Mode != Interactive && (k.Session != Session{}) {
		k.report("/session", "session: it has no meaning without mode: interactive",
			"leave it out, or set mode: interactive")
	}
}

// placeholdersOfEnv are those that variables may have.
var placeholdersOfEnv = []string{"placeholder", "dir", "run", "session"}

func (k *checker) checkEnv() {
	for _, name := range slices.Sorted(maps.Keys(k.Env)) {
		at := "/agent/env/" + strictjson.Escape(name)
		for _, p := range Placeholders(k.Env[name]) {
			if service, is := strings.CutPrefix(p, upstreamPrefix); is {
				k.checkUpstream(at, service)
				continue
			}
			if !slices.Contains(placeholdersOfEnv, p) {
				k.report(at, "agent.env: the placeholder {"+p+"} is not known here",
					"there are {"+strings.Join(placeholdersOfEnv, "}, {")+"} and {upstream.NAME}")
			}
		}
	}
	for i, name := range k.CallerEnv {
		if slices.ContainsFunc(ownEnv, func(own string) bool {
			return name == own || strings.HasSuffix(own, "_") && strings.HasPrefix(name, own)
		}) {
			k.report("/agent/caller_env/"+strconv.Itoa(i), fmt.Sprintf("agent.caller_env: %s is AOD's to set", name),
				"leave it out")
		}
	}
}

// ownEnv are the variables that no caller sets: those of AOD, and those by which a program is
// made to run another one. One that ends with _ is a beginning.
var ownEnv = []string{
	"AOD_", "LD_", "GIT_CONFIG_", "PATH", "HOME", "TMPDIR", "BASH_ENV", "ENV", "IFS", "PYTHONPATH",
	"PYTHONSTARTUP", "NODE_OPTIONS",
}
