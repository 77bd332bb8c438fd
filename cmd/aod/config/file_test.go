package config

import (
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/api/fault"
)

func TestANearMissIsRecognised(t *testing.T) {
	for text, want := range map[string]string{
		"lisen: x":                    "did you mean listen?",
		"queue-wait: 1s":              "did you mean queue_wait?",
		"noAuth: true":                "did you mean no_auth?",
		"token: secret":               "did you mean tokens?",
		"units_dir: x":                "did you mean units?",
		"entirely_different: 1":       "aod config lists what there is",
		"unit: {x: {acess: \"\"}}":    "did you mean access?",
		"unit: {x: {max_timeout: 1}}": "did you mean timeout?",
	} {
		_, err := load(t, given{file: text})
		if got := fault.Public(err).Findings; len(got) != 1 || got[0].Hint != want {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
		if strings.Contains(fault.Public(err).Findings[0].Message, "secret") {
			t.Error("a value of an unknown key is repeated")
		}
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"broken syntax", "a: [", "aod.yaml:1: it isn't YAML"},
		{"a list", "- a", "aod.yaml:1: it must hold keys with values"},
		{"a text", "listen", "aod.yaml:1: it must hold keys with values"},
		{"two documents", "queue: 1\n---\nqueue: 2", "aod.yaml:2: it holds more than one document"},
		{"a key that is a number", "1: 2", "aod.yaml:1: a key must be a text"},
		{"a merge", "unit: {a: &a {queue: 1}, b: {<<: *a}}", "aod.yaml:1: unit.b: a key must be a text"},
		{"units that are a list", "unit: [a]", "aod.yaml:1: unit: it must hold keys with values"},
		{"too large", strings.Repeat("#", maxFile+1), "aod.yaml: it is larger than 1MiB"},
		{"a map where a number belongs", "queue: {a: 1}", "aod.yaml:1: queue: it can't be a map of keys"},
		{"a list where a number belongs", "queue: [1]", "aod.yaml:1: queue: it can't be a list"},
		{"a map in a list", "hosts: [{a: b}]", "aod.yaml:1: hosts: an item can't be a map of keys"},
		{"a number in quotes", `queue: "1"`, `aod.yaml:1: queue: it can't be the text "1"`},
		{"an octal number", "queue: 0o17", `aod.yaml:1: queue: "0o17" isn't a whole number`},
		{"a tag of its own", "queue: !secret 1", `aod.yaml:1: queue: it can't be "1" with the YAML type "secret"`},
		{"a path from a shell", "data: ~/aod", `aod.yaml:1: data: "~/aod": only a shell knows what ~ is`},
		{"a path with a NUL", `data: "a\0b"`, `aod.yaml:1: data: "a\x00b" has control characters in it`},
		{"a unit that contains itself", "unit: &u {a: *u}", `aod.yaml:1: there is no setting "unit.a.a"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := load(t, given{file: c.text})
			if got := findings(t, err); len(got) != 1 || !strings.HasPrefix(got[0], c.want) {
				t.Errorf("%q, want %s", got, c.want)
			}
		})
	}
	for _, name := range []string{"/nonexistent/aod.yaml", t.TempDir()} {
		_, err := Load(Options{File: name, Data: "/data"})
		if got := findings(t, err); !strings.HasPrefix(got[0], name+": it can't be read: ") || strings.Count(got[0], name) != 1 {
			t.Error(got)
		}
	}
}
