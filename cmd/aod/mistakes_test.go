package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestAMistakeIsTheUsersAndSaysWhatNext(t *testing.T) {
	work, _ := alone(t)
	unitAt(t, work+"/hello", "hello", "here")
	for args, want := range map[string][]string{
		"run x --tmeout 3s":                     {`aod run has no flag "--tmeout"`, "did you mean --timeout?"},
		"run x -z":                              {`aod run has no flag "-z"`, "see aod run --help"},
		"run x --timeout 3":                     {`--timeout can't be "3"`, "30s"},
		"run x --history many":                  {`--history can't be "many"`, "whole number"},
		"run x --detach=maybe":                  {`--detach can't be "maybe"`, "true or false"},
		"run x --out":                           {"--out needs a value"},
		"agent run x --session a --new-session": {"--new-session and --session exclude one another"},
		"flow show x --json --format tree":      {"--format and --json exclude one another"},
		"agent fly":                             {`there is no command "fly"`},
		"au fly":                                {`there is no command "fly"`},
		"run nothing":                           {`there is no capsule "nothing"`, "`aod init nothing` makes a new one"},
		"run no:thing":                          {"--units\n"},
		"run ./hello --replace":                 {"--replace is for uploads"},
		"test ./hello":                          {"has no test case"},
	} {
		code, _, told := command(t, t.Context(), strings.Fields(args)...)
		if code != 2 || strings.Contains(told, "inside AOD") {
			t.Errorf("aod %s: code %d, %s", args, code, told)
		}
		contains(t, told, want...)
	}
}

func TestErrorsAreJSONWhereOneDocumentIsWanted(t *testing.T) {
	work, _ := alone(t)
	unitAt(t, work+"/hello", "hello", "here")
	write(t, "name: 1234\n", work, "odd", "agent.yaml")
	for args, kind := range map[string]string{
		"run nothing --json": "not_found", "run ./hello --set a --json": "invalid_input", "run ./odd --json": "invalid_capsule",
		"agent run nothing -m x --json": "not_found", "test nothing --json": "not_found", "run --json": "invalid_input",
	} {
		code, out, told := command(t, t.Context(), strings.Fields(args)...)
		var refused struct {
			Error struct {
				Kind, Message string
				Findings      []struct{ Message string }
			}
			ExitCode int `json:"exit_code"`
		}
		if err := json.Unmarshal([]byte(out), &refused); err != nil || code != 2 || refused.ExitCode != 2 || refused.Error.Kind != kind {
			t.Errorf("aod %s: code %d, %v: %s", args, code, err, out)
		}
		contains(t, told, refused.Error.Message)
		if kind == "invalid_capsule" {
			contains(t, out, "name: expected a string", `name: \"1234\"`)
		}
	}
	if code, out, _ := command(t, t.Context(), "run", "nothing"); code != 2 || out != "" {
		t.Errorf("without --json: code %d, %s", code, out)
	}
}

func TestWhatIsPrintedAsJSON(t *testing.T) {
	work, data := alone(t)
	write(t, "start: a\nnodes: {a: {set: {x: 1}}}\n", work, "flowing", "flow.yaml")
	write(t, "kind: flow\n", work, "flowing", "agent.yaml")
	write(t, `{"input": {"type": "object"}, "output": {"type": "object"}}`, work, "flowing", "schema.json")
	write(t, "kind: agent\nagent: {command: 7}\n", work, "wrapped", "agent.yaml")
	write(t, "hush", data, "secrets", "KEY")
	for args, want := range map[string]string{
		"version --json":               `{"version":"`,
		"secret ls --json":             `{"name":"KEY","changed":"`,
		"flow show ./flowing --json":   `{"flow":{`,
		"agent check ./wrapped --json": `{"name":"./wrapped","valid":false,"findings":[{`,
	} {
		_, out, told := command(t, t.Context(), strings.Fields(args)...)
		if !strings.HasPrefix(out, want) || !json.Valid([]byte(out)) || strings.Contains(out, "hush") {
			t.Errorf("aod %s: %s%s", args, out, told)
		}
	}
	code, out, _ := command(t, t.Context(), "--version")
	_, long, _ := command(t, t.Context(), "version")
	if code != 0 || out != long || out == "" {
		t.Errorf("--version: code %d, %q, and version %q", code, out, long)
	}
}
