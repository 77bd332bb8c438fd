package config

import (
	"strings"
	"testing"
)

func TestTheHooksOfTheFile(t *testing.T) {
	c := mustLoad(t, given{file: "hooks:\n  deploy: {unit: release, team: ops, secret: deploy-hook}\n  other: {unit: hello, secret: x}\n"})
	if c.Hooks["deploy"] != (HookConfig{"release", "ops", "deploy-hook"}) || c.Hooks["other"].Team != "default" {
		t.Errorf("%+v", c.Hooks)
	}
	if at := source(c, "hooks.deploy.team"); at != "aod.yaml:2" {
		t.Errorf("the team comes from %s", at)
	}
	for text, want := range map[string]string{
		"hooks: {a: {unit: x}}":                      "it needs a unit and a secret",
		"hooks: {a: {secret: x}}":                    "it needs a unit and a secret",
		"hooks: {../a: {unit: x, secret: x}}":        "not a valid name of a hook",
		"hooks: {a: {unit: x, secret: ../x}}":        "can't be the name of a secret",
		"hooks: {a: {unit: x, secret: x, team: A}}":  "not a valid team name",
		"hooks: {a: {unit: x, secret: x, token: y}}": `there is no setting "hooks.a.token"`,
		"hooks: {a: {unit: x, secret: x}, b: [c]}":   "hooks.b",
		"hooks: [a]": "hooks",
	} {
		_, err := load(t, given{file: text})
		if err == nil || !strings.Contains(strings.Join(findings(t, err), "\n"), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
