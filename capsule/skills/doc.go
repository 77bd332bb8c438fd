// Package skills reads the skills of a capsule: folders with a SKILL.md, as agentskills.io describes them, which the
// Python library gives to a model.
//
// Read goes through src/ai/skills (skills.go), reader.files through a folder (folder.go), parse through the front
// matter of its SKILL.md. What it takes, the library takes: both have the same rules and bounds.
//
// A folder comes from anybody. No link is followed, and counts and sizes are bounded.
//
// It must not know what a capsule grants, nor what its image has.
//
// Its Go API may change with every release: see docs/stability.md.
package skills
