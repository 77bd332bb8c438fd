package capsule

import (
	"path"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/skills"
)

// DebianHas reports whether Debian's smallest image has an interpreter.
func DebianHas(interpreter string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "perl", "awk", "mawk", "sed"}, interpreter)
}

// readSkills reads the skills of a capsule, and holds them against what it grants and what its image has.
func readSkills(d *Directory, c *Capsule) {
	var findings []fault.Finding
	c.Skills, findings = skills.Read(d.source.root)
	d.findings = append(d.findings, findings...)
	granted, scripts := c.Agent.Loop.Scripts, false
	for _, skill := range c.Skills {
		scripts = scripts || len(skill.Scripts) > 0
		if len(skill.Scripts) > 0 && !granted {
			d.warn(skills.Place+"/"+skill.Name, "", "its scripts can't be run: agent.yaml doesn't grant it",
				"add loop: {scripts: true}, if the model may run them")
		}
		for _, script := range skill.Scripts {
			if granted && c.dockerfile.lacks(script.Interpreter) {
				d.warn(path.Join(skills.Place, skill.Name, script.Name), "",
					"it needs "+fault.Quote(script.Interpreter)+", which "+baseImage+" doesn't have",
					"install it in the Dockerfile")
			}
		}
	}
	if granted && !scripts {
		d.warn(agentFile, "/loop/scripts", "it grants scripts, and there are none in "+skills.Place,
			"remove it, or add a skill with scripts/")
	}
	refuseOwnNames(d, c)
}

// refuseOwnNames reports tools that have the names of the loop's own, which the capsule has granted.
func refuseOwnNames(d *Directory, c *Capsule) {
	own := map[string]bool{
		"python": c.Agent.Loop.Python != "", "skill": len(c.Skills) > 0, "skill_file": len(c.Skills) > 0,
		"run_script": len(c.Skills) > 0 && c.Agent.Loop.Scripts,
	}
	for _, tool := range c.Tools {
		if own[tool.Name] {
			d.report(toolsFile, 0, "a tool can't be called "+tool.Name+": the loop has one of that name here",
				"give it another name")
		}
	}
}

// lacks reports whether what the Dockerfile makes surely has no such interpreter: it adds packages alone to aod/base,
// and none whose name has the interpreter's in it.
func (d dockerfile) lacks(interpreter string) bool {
	name := path.Base(interpreter)
	return interpreter != "" && d.plain && name != "python3" && !DebianHas(name) && !strings.Contains(d.runs, name)
}

// isPlain reports whether a Dockerfile adds nothing to aod/base but the context and packages of apt, and returns what
// it runs.
func isPlain(all [][]string) (plain bool, runs string) {
	plain, froms := true, 0
	for _, fields := range all {
		text := strings.Join(fields[1:], " ")
		switch strings.ToUpper(fields[0]) {
		case fromWord:
			image, _ := fromLine(fields[1:])
			froms++
			plain = plain && isBase(image)
		case addWord:
			plain = false
		case copyWord:
			plain = plain && !fromElsewhere(fields)
		case runWord:
			plain = plain && strings.Contains(text, "apt-get ")
			runs += text + "\n"
		}
	}
	return plain && froms == 1, runs
}
