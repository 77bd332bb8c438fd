package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
)

// AgentsConfig holds the settings for requests of the agent HTTP contract. A unit's own
// settings can only restrict them.
type AgentsConfig struct {
	Require   []string          // fields that a request must have, of contractFields
	Modes     []string          // that are accepted; none: all
	RiskTiers []string          // that are accepted; none: all, also a request without one
	TaskTypes map[string]string // names of units, by task type
}

// contractFields are the fields of a request that can be made required, beside those that
// always are (specification "Agent HTTP contract", section "Request schema").
var contractFields = []string{"workflow_id", "stage_id", "user_id", "mode", "risk_tier", "domain_id"}

// settings is the table of the block agents. It can be set in the file only.
func (a *AgentsConfig) settings() []setting {
	return []setting{
		{"require", fieldNames(&a.Require), "", "optional fields of the contract that every request must have"},
		{
			"modes", labels(&a.Modes, "[DEMO]"), "",
			"modes that are taken; a request without one is of the mode DEMO; all by default",
		},
		{
			"risk_tiers", labels(&a.RiskTiers, "[NON_SENSITIVE]"), "",
			"risk tiers that are taken, and a request must have one then; all by default",
		},
		{
			"task_types", taskTypes(&a.TaskTypes), "",
			"units by the task types that stand for them, before any unit's own name does",
		},
	}
}

func fieldNames(into *[]string) list {
	return words(into, "fields", contractFields, "an optional field of the contract")
}

// labels is a list of labels that requests may have.
func labels(into *[]string, example string) list {
	return list{into, "texts", "write a list of texts of up to 200 bytes, such as " + example, ",", checkLabel}
}

// maxLabel bounds a label in bytes, like a value of a run's metadata.
const maxLabel = 200

func checkLabel(text string) (string, error) {
	switch {
	case text == "":
		return "", errors.New("the text is empty")
	case len(text) > maxLabel:
		return "", fmt.Errorf("%s has more than %d bytes", fault.Quote(text), maxLabel)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return "", fmt.Errorf("%s isn't plain text", fault.Quote(text))
	}
	return text, nil
}

// mapping maps texts to texts: a map in the file.
type mapping struct {
	into   *map[string]string
	name   string
	advice string
	takes  func(n *yaml.Node) bool      // reports whether a value has the right type
	check  func(key, text string) error // of an entry
}

func (v mapping) kind() string { return v.name }
func (v mapping) hint() string { return v.advice }

func (v mapping) String() string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(*v.into)) {
		all = append(all, key+"="+(*v.into)[key])
	}
	return strings.Join(all, ",")
}

// set refuses any text: the map has no flag and no variable.
func (v mapping) set(string) error { return errors.New("it isn't a map of names") }

func (v mapping) add(key, text string) error {
	if err := v.check(key, text); err != nil {
		return err
	}
	if *v.into == nil {
		*v.into = map[string]string{}
	}
	(*v.into)[key] = text
	return nil
}

// taskTypes maps task types to names of units.
func taskTypes(into *map[string]string) mapping {
	return mapping{
		into: into, name: "names by types",
		advice: "write task types of up to 200 bytes with units' names, such as {LIT_RETRIEVAL: literature}",
		takes:  func(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" },
		check: func(key, name string) error {
			if _, err := checkLabel(key); err != nil {
				return fmt.Errorf("the task type: %w", err)
			}
			return api.CheckUnitName(name)
		},
	}
}

// entries reads a map, and reports each problem at its entry's line.
func (f *file) entries(s setting, field mapping, key string, line int, n *yaml.Node) {
	before := len(f.findings)
	for name, value := range f.pairs(key, line, n) {
		switch {
		case !field.takes(value):
			f.report(f.at(value.Line), key+": a value can't be "+describe(value), field.hint())
		default:
			if err := field.add(name.Value, textOf(value)); err != nil {
				f.report(f.at(name.Line), key+": "+err.Error(), field.hint())
			}
		}
	}
	if len(f.findings) == before {
		f.set(s, key, f.at(line), f.base, nil)
	}
}

// textOf is a scalar as it is written, or those of a list with commas between them.
func textOf(n *yaml.Node) string {
	if n.Kind != yaml.SequenceNode {
		return n.Value
	}
	texts := make([]string, 0, len(n.Content))
	for _, item := range n.Content {
		texts = append(texts, follow(item).Value)
	}
	return strings.Join(texts, ",")
}

// checkAgents reports values that a unit accepts and the server doesn't: a unit's settings
// can't add to the server's.
func (l *loader) checkAgents(unit string, u UnitConfig) {
	for _, c := range []struct {
		key       string
		own, most []string
	}{{"modes", u.Modes, l.config.Agents.Modes}, {"risk_tiers", u.RiskTiers, l.config.Agents.RiskTiers}} {
		for _, text := range c.own {
			if len(c.most) > 0 && !slices.Contains(c.most, text) {
				l.contradiction(unit+"."+c.key, "agents."+c.key,
					fmt.Sprintf("%s isn't among agents.%s", fault.Quote(text), c.key),
					"leave it out, or add it to agents."+c.key)
			}
		}
	}
}
