package capsule

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	sums     = "---\nname: sums\ndescription: Adds numbers.\n---\n"
	runsThem = "name: good\nloop:\n  scripts: true\n"
)

func TestWhatASkillNeedsIsWarnedOf(t *testing.T) {
	t.Parallel()
	const skill, script, js = "src/ai/skills/sums/SKILL.md", "src/ai/skills/sums/scripts/add.py", "src/ai/skills/sums/scripts/add.js"
	const lacks = "src/ai/skills/sums/scripts/add.js: it needs \"node\", which aod/base doesn't have (install it in the Dockerfile)"
	cases := []struct {
		name    string
		changes map[string]string
		want    []string
	}{
		{"nothing", map[string]string{skill: sums}, nil},
		{"scripts and their grant", map[string]string{skill: sums, script: "", "agent.yaml": runsThem}, nil},
		{"a grant of scripts", map[string]string{skill: sums, js: ""}, []string{
			"src/ai/skills/sums: its scripts can't be run: agent.yaml doesn't grant it (add loop: {scripts: true}, if the model may run them)",
		}},
		{"scripts for a grant", map[string]string{skill: sums, "agent.yaml": runsThem}, []string{
			"agent.yaml:3: it grants scripts, and there are none in src/ai/skills (remove it, or add a skill with scripts/)",
		}},
		{"an interpreter", map[string]string{skill: sums, js: "", "agent.yaml": runsThem}, []string{lacks}},
		{"an interpreter that is called otherwise", map[string]string{skill: sums, script: "#!/usr/bin/python\n", "agent.yaml": runsThem}, []string{
			"src/ai/skills/sums/scripts/add.py: it needs \"/usr/bin/python\", which aod/base doesn't have (install it in the Dockerfile)",
		}},
		{"another package", map[string]string{
			skill: sums, js: "", "agent.yaml": runsThem, "Dockerfile": "FROM aod/base:x\nRUN apt-get install -y git\nCOPY . /capsule\n",
		}, []string{lacks}},
		{"nothing, with its package", map[string]string{
			skill: sums, js: "", "agent.yaml": runsThem, "Dockerfile": "FROM aod/base\nRUN apt-get install -y nodejs\nCOPY . /capsule\n",
		}, nil},
		{"nothing, in another image", map[string]string{
			skill: sums, js: "", "agent.yaml": runsThem, "Dockerfile": "FROM node\nCOPY . /capsule\nCMD [\"x\"]\n",
		}, nil},
		{"nothing, with what nobody knows", map[string]string{
			skill: sums, js: "", "agent.yaml": runsThem, "Dockerfile": "FROM aod/base\nCOPY . /capsule\nRUN sh /capsule/install.sh\n",
		}, nil},
		{"nothing, with files of another image", map[string]string{
			skill: sums, js: "", "agent.yaml": runsThem, "Dockerfile": "FROM aod/base\nCOPY --from=node /usr/bin/node /usr/bin/\nCOPY . /capsule\n",
		}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var told []string
			found := loaded(t, newCapsule(t, c.changes))
			for _, w := range found.Warnings {
				told = append(told, w.String())
			}
			if diff := cmp.Diff(c.want, told); diff != "" || len(found.Skills) != 1 {
				t.Error(diff, found.Skills)
			}
		})
	}
}

func TestASkillThatBreaksTheRulesIsAProblemOfItsCapsule(t *testing.T) {
	t.Parallel()
	checkFindings(t, newCapsule(t, map[string]string{"src/ai/skills/sums/SKILL.md": "# Sums\n"}), "src/ai/skills/sums/SKILL.md:1: it doesn't begin with a front matter")
}

func TestAToolCantHaveTheNameOfOneOfTheLoops(t *testing.T) {
	t.Parallel()
	const skill, script = "src/ai/skills/sums/SKILL.md", "src/ai/skills/sums/scripts/add.py"
	tools := ""
	for _, name := range []string{"python", "skill", "skill_file", "run_script"} {
		tools += "- {name: " + name + ", capsule: b}\n"
	}
	for name, c := range map[string]struct {
		changes map[string]string
		want    []string
	}{
		"where there is none of them": {map[string]string{}, nil},
		"with skills":                 {map[string]string{skill: sums}, []string{"skill", "skill_file"}},
		"with all":                    {map[string]string{skill: sums, script: "", "agent.yaml": runsThem + "  python: kept\n"}, []string{"python", "skill", "skill_file", "run_script"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.changes["tools.yaml"] = tools
			dir := newCapsule(t, c.changes)
			if c.want == nil {
				loaded(t, dir)
				return
			}
			checkFindings(t, dir, "tools.yaml: a tool can't be called "+strings.Join(c.want, "\ntools.yaml: a tool can't be called "))
		})
	}
}
